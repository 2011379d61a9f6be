/* Answers are found for as long as they are good, within their bounds, and under the policy that vetted them. */
#include "dns/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND 1000000u

static struct dns_name name_of(const char *text)
{
	struct dns_name name;
	assert_true(dns_name_set(&name, slice_str(text)));
	return name;
}

static void put(struct dns_cache *c, const char *text, uint16_t type, uint32_t ttl, uint16_t len, uint64_t now)
{
	union dns_answer_room room;
	struct dns_name name = name_of(text);
	memset(&room, 0, sizeof(room));
	room.answer.ttl = ttl;
	room.answer.type = type;
	room.answer.len = len;
	memset(room.answer.data, text[0], len);
	dns_cache_put(c, &name, &room.answer, 1, now);
}

static const struct dns_answer *find(struct dns_cache *c, const char *text, uint16_t type, uint64_t now, uint32_t *ttl)
{
	struct dns_name name = name_of(text);
	return dns_cache_find(c, &name, type, now, ttl);
}

static bool has(struct dns_cache *c, const char *text)
{
	uint32_t ttl;
	return find(c, text, DNS_TYPE_A, 0, &ttl) != NULL;
}

static struct dns_cache *cache_of(size_t entries, size_t bytes)
{
	struct dns_cache *c = dns_cache_new(entries, bytes);
	assert_non_null(c);
	dns_cache_set_generation(c, 1);
	return c;
}

static void found_by_name_and_type(void **state)
{
	uint32_t ttl = 0;
	struct dns_cache *c = cache_of(10, KIB(64));
	(void)state;
	put(c, "a.test", DNS_TYPE_A, 60, 20, 0);
	put(c, "b.test", DNS_TYPE_AAAA, 60, 0, 0);
	const struct dns_answer *a = find(c, "a.test", DNS_TYPE_A, 0, &ttl);
	assert_non_null(a);
	assert_int_equal(a->len, 20);
	assert_int_equal(a->data[19], 'a');
	assert_int_equal(ttl, 60);
	assert_null(find(c, "a.test", DNS_TYPE_AAAA, 0, &ttl));
	assert_non_null(find(c, "b.test", DNS_TYPE_AAAA, 0, &ttl));
	assert_null(find(c, "b.test", DNS_TYPE_A, 0, &ttl));
	assert_null(find(c, "aa.test", DNS_TYPE_A, 0, &ttl));
	dns_cache_free(&c);
	assert_null(c);
	dns_cache_free(&c);
}

static void never_stale(void **state)
{
	uint32_t ttl = 0;
	struct dns_cache *c = cache_of(10, KIB(64));
	(void)state;
	put(c, "a.test", DNS_TYPE_A, 2, 20, SECOND);
	assert_non_null(find(c, "a.test", DNS_TYPE_A, 2 * SECOND, &ttl));
	assert_int_equal(ttl, 1);
	assert_non_null(find(c, "a.test", DNS_TYPE_A, 3 * SECOND - 1, &ttl));
	assert_int_equal(ttl, 1);
	assert_null(find(c, "a.test", DNS_TYPE_A, 3 * SECOND, &ttl));
	assert_int_equal(dns_cache_count(c), 0);
	assert_int_equal(dns_cache_bytes(c), 0);
	put(c, "a.test", DNS_TYPE_A, 0, 20, SECOND); /* good for no time */
	assert_int_equal(dns_cache_count(c), 0);
	dns_cache_free(&c);
}

static void newer_takes_the_place_of_older(void **state)
{
	uint32_t ttl = 0;
	struct dns_cache *c = cache_of(10, KIB(64));
	(void)state;
	put(c, "a.test", DNS_TYPE_A, 2, 20, 0);
	put(c, "a.test", DNS_TYPE_A, 9, 30, 0);
	assert_int_equal(dns_cache_count(c), 1);
	assert_int_equal(find(c, "a.test", DNS_TYPE_A, 0, &ttl)->len, 30);
	assert_int_equal(ttl, 9);
	put(c, "a.test", DNS_TYPE_A, 0, 30, 0); /* says: do not keep */
	assert_int_equal(dns_cache_count(c), 0);
	dns_cache_free(&c);
}

static void least_recently_used_goes_first(void **state)
{
	struct dns_cache *c = cache_of(3, KIB(64));
	(void)state;
	put(c, "a.test", DNS_TYPE_A, 60, 20, 0);
	put(c, "b.test", DNS_TYPE_A, 60, 20, 0);
	put(c, "c.test", DNS_TYPE_A, 60, 20, 0);
	assert_true(has(c, "a.test"));
	put(c, "d.test", DNS_TYPE_A, 60, 20, 0);
	assert_int_equal(dns_cache_count(c), 3);
	assert_true(has(c, "a.test"));
	assert_false(has(c, "b.test"));
	assert_true(has(c, "c.test"));
	assert_true(has(c, "d.test"));
	dns_cache_free(&c);
}

static void bounded_by_bytes(void **state)
{
	char text[32];
	struct dns_cache *c = cache_of(1000, KIB(16));
	(void)state;
	for (int i = 0; i < 500; i++) {
		snprintf(text, sizeof(text), "n%d.test", i);
		put(c, text, DNS_TYPE_A, 60, (uint16_t)(i % 1000), 0);
		assert_true(dns_cache_bytes(c) <= KIB(16));
		assert_true(has(c, text));
	}
	assert_true(dns_cache_count(c) > 10);
	dns_cache_free(&c);

	c = cache_of(10, 256); /* one that is larger than all of it */
	put(c, "a.test", DNS_TYPE_A, 60, 20, 0);
	put(c, "b.test", DNS_TYPE_A, 60, 1000, 0);
	assert_true(has(c, "a.test"));
	assert_false(has(c, "b.test"));
	dns_cache_free(&c);
}

static void another_policy_empties_it(void **state)
{
	struct dns_cache *c = cache_of(10, KIB(64));
	(void)state;
	put(c, "a.test", DNS_TYPE_A, 60, 20, 0);
	dns_cache_set_generation(c, 1);
	assert_true(has(c, "a.test"));
	dns_cache_set_generation(c, 2);
	assert_false(has(c, "a.test"));
	assert_int_equal(dns_cache_bytes(c), 0);
	put(c, "a.test", DNS_TYPE_A, 60, 20, 0); /* asked under the first, answered under the second */
	assert_false(has(c, "a.test"));
	dns_cache_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_name_and_type),
		cmocka_unit_test(never_stale),
		cmocka_unit_test(newer_takes_the_place_of_older),
		cmocka_unit_test(least_recently_used_goes_first),
		cmocka_unit_test(bounded_by_bytes),
		cmocka_unit_test(another_policy_empties_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
