/* The rate of answers to one prefix: a burst, then the rate, then every other one as a hint; loopback has no bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dns/rrl.h"

#define START 1000000000u

static struct dns_rrl rrl;

static struct addr parse(const char *text)
{
	struct addr a;
	assert_true(addr_parse(slice_str(text), &a));
	return a;
}

/* How many of n are answered. */
static size_t count(const char *from, size_t n, uint64_t now_us)
{
	struct addr a = parse(from);
	size_t answered = 0;
	for (size_t i = 0; i < n; i++)
		answered += dns_rrl_judge(&rrl, &a, now_us) == DNS_RRL_ANSWER;
	return answered;
}

static void burst_and_rate(void **state)
{
	(void)state;
	dns_rrl_init(&rrl);
	assert_int_equal(count("203.0.113.7", LIMIT_DNS_BURST + 500, START), LIMIT_DNS_BURST);
	assert_int_equal(count("203.0.113.7", 500, START), 0);
	assert_int_equal(count("203.0.113.7", 5000, START + 1000000), LIMIT_DNS_RATE);
	assert_int_equal(count("203.0.113.7", 5000, START + 100000000), LIMIT_DNS_BURST);
}

/* Neighbours count as one, others do not. */
static void prefixes(void **state)
{
	(void)state;
	dns_rrl_init(&rrl);
	rrl.seed = 1; /* for which these do not share a counter */
	assert_int_equal(count("203.0.113.7", LIMIT_DNS_BURST, START), LIMIT_DNS_BURST);
	assert_int_equal(count("203.0.113.8", 10, START), 0);
	assert_int_equal(count("203.0.112.7", 10, START), 10);
	assert_int_equal(count("2001:db8:0:100::1", LIMIT_DNS_BURST, START), LIMIT_DNS_BURST);
	assert_int_equal(count("2001:db8:0:1ff::2", 10, START), 0);
	assert_int_equal(count("2001:db8:0:200::1", 10, START), 10);
}

static void hints(void **state)
{
	(void)state;
	struct addr a = parse("203.0.113.7");
	dns_rrl_init(&rrl);
	count("203.0.113.7", LIMIT_DNS_BURST, START);
	for (int i = 0; i < 10; i++)
		assert_int_equal(dns_rrl_judge(&rrl, &a, START), i % 2 == 0 ? DNS_RRL_TRUNCATE : DNS_RRL_IGNORE);
}

static void loopback(void **state)
{
	(void)state;
	static const char *const ours[] = {"127.0.0.1", "127.255.255.254", "::1"};
	static const char *const others[] = {"128.0.0.1", "::2", "1::1", "::"};
	dns_rrl_init(&rrl);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(count(ours[i], 3 * LIMIT_DNS_BURST, START), 3 * LIMIT_DNS_BURST);
	for (size_t i = 0; i < 4; i++) {
		struct addr a = parse(others[i]);
		assert_false(addr_is_loopback(&a));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(burst_and_rate), cmocka_unit_test(prefixes),
					   cmocka_unit_test(hints), cmocka_unit_test(loopback)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
