/* What is left of a response: aliases that the policy allows, permitted addresses of the type that was asked, a clamped time; and
 * which responses are refused as a whole. */
#include "dns/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/dns/packet.h"

#define TTL 300
#define RESPONSE 0x8180

/* A response under way: records are counted in its header. */
struct response {
	struct bytes b;
};

static void begin(struct response *r, const char *name, unsigned type, unsigned rcode)
{
	r->b = (struct bytes){0};
	add_header(&r->b, RESPONSE | rcode, 1, 0, 0, 0);
	add_question(&r->b, name, type);
}

static void count(struct response *r, size_t at)
{
	unsigned n = (unsigned)((unsigned char)r->b.ptr[at] << 8 | (unsigned char)r->b.ptr[at + 1]) + 1;
	r->b.ptr[at] = (char)(n >> 8);
	r->b.ptr[at + 1] = (char)n;
}

static void data(struct response *r, const char *owner, unsigned type, uint32_t ttl, struct slice rdata)
{
	add_name(&r->b, owner);
	add_record(&r->b, type, ttl, rdata.len);
	bytes_add(&r->b, rdata);
	count(r, 6);
}

static void address(struct response *r, const char *owner, const char *text, uint32_t ttl)
{
	struct addr a;
	assert_true(addr_parse(slice_str(text), &a));
	bool v4 = a.family == ADDR_V4;
	data(r, owner, v4 ? DNS_TYPE_A : DNS_TYPE_AAAA, ttl, slice_of(a.bytes, v4 ? 4 : 16));
}

static void alias(struct response *r, const char *owner, const char *target, uint32_t ttl)
{
	struct bytes name = {0};
	add_name(&name, target);
	data(r, owner, DNS_TYPE_CNAME, ttl, bytes_slice(&name));
	bytes_free(&name);
}

/* In the authority section. */
static void soa(struct response *r, uint32_t ttl, uint32_t minimum)
{
	struct bytes b = {0};
	add_name(&b, "ns.test");
	add_name(&b, "root.test");
	for (int i = 0; i < 4; i++)
		add32(&b, 7);
	add32(&b, minimum);
	add_name(&r->b, "test");
	add_record(&r->b, DNS_TYPE_SOA, ttl, b.len);
	bytes_add(&r->b, bytes_slice(&b));
	bytes_free(&b);
	count(r, 8);
}

/* Allows what ends in .test. */
static enum reason check(void *arg, const struct dns_name *name)
{
	(*(int *)arg)++;
	return slice_ends(dns_name_text(name), SLICE(".test")) ? REASON_NONE : REASON_HOST_NOT_ALLOWED;
}

static int checks;
static struct dns_answer_rules rules;
static union dns_answer_room room;

static int setup(void **state)
{
	(void)state;
	checks = 0;
	memset(&room, 0xa5, sizeof(room));
	rules = (struct dns_answer_rules){.ttl_min = 10, .ttl_max = 3600, .check = check, .arg = &checks};
	return 0;
}

/* Reads and frees it. */
static enum reason finish(struct response *r, const char *name, uint16_t type)
{
	struct dns_name asked;
	assert_true(dns_name_set(&asked, slice_str(name)));
	enum reason why = dns_answer_read(exact(&r->b), &asked, type, &rules, &room);
	bytes_free(&r->b);
	return why;
}

static void assert_address(size_t i, const char *text)
{
	struct addr got, wanted;
	assert_true(dns_answer_address(&room.answer, i, &got));
	assert_true(addr_parse(slice_str(text), &wanted));
	assert_true(addr_eq(&got, &wanted));
}

static void addresses_of_the_type(void **state)
{
	struct response r;
	struct addr none;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "1.1.1.1", TTL);
	address(&r, "a.test", "2606:4700::1", TTL);
	address(&r, "A.Test", "8.8.8.8", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.n_records, 2);
	assert_address(0, "1.1.1.1");
	assert_address(1, "8.8.8.8");
	assert_false(dns_answer_address(&room.answer, 2, &none));
	assert_int_equal(room.answer.ttl, TTL);
	assert_int_equal(room.answer.rcode, DNS_RCODE_NOERROR);
	assert_int_equal(checks, 0);

	begin(&r, "a.test", DNS_TYPE_AAAA, 0);
	address(&r, "a.test", "2606:4700::1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_AAAA), REASON_NONE);
	assert_address(0, "2606:4700::1");
}

static void unasked_records_are_dropped(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "bank.test", "6.6.6.6", 1);
	alias(&r, "other.test", "evil.example", 1);
	data(&r, "a.test", DNS_TYPE_TXT, 1, SLICE("\3abc"));
	address(&r, "a.test", "1.1.1.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.n_records, 1);
	assert_int_equal(room.answer.n_aliases, 0);
	assert_int_equal(room.answer.ttl, TTL);
	assert_address(0, "1.1.1.1");
}

static void t17_aliases_are_followed_in_any_order(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "c.test", "1.1.1.1", 200);
	alias(&r, "b.test", "c.test", 100);
	alias(&r, "a.test", "b.test", 150);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.n_aliases, 2);
	assert_int_equal(room.answer.n_records, 1);
	assert_int_equal(room.answer.ttl, 100);
	assert_int_equal(checks, 2);
	assert_address(0, "1.1.1.1");
}

static void t17_alias_that_leaves_the_policy(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	alias(&r, "a.test", "b.test", TTL);
	alias(&r, "b.test", "tunnel.evil.example", TTL);
	address(&r, "tunnel.evil.example", "1.1.1.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_ALIAS_NOT_ALLOWED);

	begin(&r, "a.test", DNS_TYPE_A, DNS_RCODE_NXDOMAIN); /* though nothing is there */
	alias(&r, "a.test", "data.evil.example", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_ALIAS_NOT_ALLOWED);
}

static void t17_aliases_in_a_circle(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	alias(&r, "a.test", "a.test", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
	begin(&r, "a.test", DNS_TYPE_A, 0);
	alias(&r, "a.test", "b.test", TTL);
	alias(&r, "b.test", "c.test", TTL);
	alias(&r, "c.test", "B.test", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
}

static enum reason many_aliases(int n)
{
	struct response r;
	char owner[32] = "a.test", target[32];
	begin(&r, owner, DNS_TYPE_A, 0);
	for (int i = 0; i < n; i++) {
		snprintf(target, sizeof(target), "n%d.test", i);
		alias(&r, owner, target, TTL);
		memcpy(owner, target, sizeof(owner));
	}
	address(&r, owner, "1.1.1.1", TTL);
	return finish(&r, "a.test", DNS_TYPE_A);
}

static void t17_very_many_aliases(void **state)
{
	(void)state;
	assert_int_equal(many_aliases(LIMIT_DNS_ALIASES), REASON_NONE);
	assert_address(0, "1.1.1.1");
	assert_int_equal(many_aliases(LIMIT_DNS_ALIASES + 1), REASON_UPSTREAM_MALFORMED);
}

static void t17_very_many_addresses(void **state)
{
	struct response r;
	char text[32];
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	for (int i = 1; i <= LIMIT_DNS_RECORDS; i++) {
		snprintf(text, sizeof(text), "8.8.8.%d", i);
		address(&r, "a.test", text, TTL);
	}
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.n_records, LIMIT_ANSWERS);

	begin(&r, "a.test", DNS_TYPE_A, 0);
	for (int i = 0; i <= LIMIT_DNS_RECORDS; i++)
		address(&r, "a.test", "8.8.8.8", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
}

static void t18_private_addresses_are_removed(void **state)
{
	static const char *const bad[] = {"10.0.0.1", "127.0.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.0"};
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		address(&r, "a.test", bad[i], TTL);
	address(&r, "a.test", "1.1.1.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.n_records, 1);
	assert_address(0, "1.1.1.1");

	begin(&r, "a.test", DNS_TYPE_AAAA, 0);
	address(&r, "a.test", "::ffff:10.0.0.1", TTL);
	address(&r, "a.test", "fd00::1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_AAAA), REASON_ADDRESS_PRIVATE);

	begin(&r, "a.test", DNS_TYPE_A, 0);
	alias(&r, "a.test", "b.test", TTL);
	address(&r, "b.test", "10.0.0.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_ADDRESS_PRIVATE);

	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "1.1.1.1", TTL);
	address(&r, "a.test", "169.254.169.254", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_ADDRESS_PRIVATE);
}

static void t18_addresses_of_the_rule(void **state)
{
	struct addr_range range;
	const char *why;
	struct response r;
	(void)state;
	assert_true(addr_range_parse(SLICE("10.4.0.0/16"), &range, &why));
	rules.vet = (struct vet){.ranges = &range, .n_ranges = 1};
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "10.4.0.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_address(0, "10.4.0.1");
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "10.4.0.1", TTL);
	address(&r, "a.test", "1.1.1.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_ADDRESS_OUTSIDE);
}

static uint32_t clamped(uint32_t ttl)
{
	struct response r;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "1.1.1.1", ttl);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	return room.answer.ttl;
}

static void time_is_clamped(void **state)
{
	(void)state;
	assert_int_equal(clamped(0), 10);
	assert_int_equal(clamped(10), 10);
	assert_int_equal(clamped(3600), 3600);
	assert_int_equal(clamped(3601), 3600);
	assert_int_equal(clamped(0x7fffffff), 3600);
	assert_int_equal(clamped(0x80000000), 10); /* counts as 0 */
}

static uint32_t negative(unsigned rcode, bool has_soa, uint32_t ttl, uint32_t minimum)
{
	struct response r;
	begin(&r, "a.test", DNS_TYPE_A, rcode);
	if (has_soa)
		soa(&r, ttl, minimum);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);
	assert_int_equal(room.answer.rcode, rcode);
	assert_int_equal(room.answer.n_records, 0);
	return room.answer.ttl;
}

static void there_is_none(void **state)
{
	(void)state;
	assert_int_equal(negative(DNS_RCODE_NXDOMAIN, true, 600, 60), 60);
	assert_int_equal(negative(DNS_RCODE_NOERROR, true, 60, 600), 60);
	assert_int_equal(negative(DNS_RCODE_NXDOMAIN, true, 86400, 86400), LIMIT_DNS_NEGATIVE_S);
	assert_int_equal(negative(DNS_RCODE_NXDOMAIN, false, 0, 0), 10);
}

static void responses_that_are_refused(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, DNS_RCODE_SERVFAIL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_UNREACHABLE);
	begin(&r, "a.test", DNS_TYPE_A, 0);
	r.b.ptr[2] |= 2;
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_TRUNCATED);
	begin(&r, "b.test", DNS_TYPE_A, 0);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
	begin(&r, "a.test", DNS_TYPE_AAAA, 0);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
	begin(&r, "a.test", DNS_TYPE_A, 0);
	data(&r, "a.test", DNS_TYPE_A, TTL, SLICE("\1\1\1"));
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
	begin(&r, "a.test", DNS_TYPE_A, DNS_RCODE_NXDOMAIN);
	address(&r, "a.test", "1.1.1.1", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
	begin(&r, "a.test", DNS_TYPE_A, 0);
	address(&r, "a.test", "1.1.1.1", TTL);
	r.b.len -= 2; /* ends in the middle of a record */
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_UPSTREAM_MALFORMED);
}

static void other_types_are_copied(void **state)
{
	struct response r;
	struct addr none;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_TXT, 0);
	data(&r, "a.test", DNS_TYPE_TXT, TTL, SLICE("\3abc"));
	data(&r, "a.test", DNS_TYPE_TXT, TTL, SLICE("\0"));
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_TXT), REASON_NONE);
	assert_int_equal(room.answer.n_records, 2);
	assert_int_equal(room.answer.len, 2 + 4 + 2 + 1);
	assert_false(dns_answer_address(&room.answer, 0, &none));

	char big[LIMIT_DNS_ANSWER - 1];
	memset(big, 'x', sizeof(big));
	begin(&r, "a.test", DNS_TYPE_TXT, 0);
	data(&r, "a.test", DNS_TYPE_TXT, TTL, slice_of(big, sizeof(big)));
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_TXT), REASON_UPSTREAM_MALFORMED);
}

static void alias_itself_is_asked_for(void **state)
{
	struct response r;
	(void)state;
	begin(&r, "a.test", DNS_TYPE_CNAME, 0);
	alias(&r, "a.test", "b.test", TTL);
	alias(&r, "b.test", "c.test", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_CNAME), REASON_NONE);
	assert_int_equal(room.answer.n_aliases, 1);
	assert_int_equal(room.answer.ttl, TTL);
	begin(&r, "a.test", DNS_TYPE_CNAME, 0);
	alias(&r, "a.test", "b.example", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_CNAME), REASON_ALIAS_NOT_ALLOWED);
	begin(&r, "a.test", DNS_TYPE_CNAME, 0);
	soa(&r, 60, 60);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_CNAME), REASON_NONE);
	assert_int_equal(room.answer.ttl, 60);
}

/* What is written is read again, and is the same. */
static void written_afresh(void **state)
{
	struct response r;
	struct bytes ask = {0};
	struct dns_query query;
	struct dns_writer w;
	char buf[LIMIT_DNS_UDP];
	(void)state;
	begin(&r, "a.test", DNS_TYPE_A, 0);
	alias(&r, "a.test", "b.test", TTL);
	alias(&r, "b.test", "long-name.c.test", TTL);
	address(&r, "long-name.c.test", "1.1.1.1", TTL);
	address(&r, "long-name.c.test", "8.8.8.8", TTL);
	assert_int_equal(finish(&r, "a.test", DNS_TYPE_A), REASON_NONE);

	add_query(&ask, "a.TEST", DNS_TYPE_A);
	assert_int_equal(dns_query_parse(bytes_slice(&ask), &query), DNS_PARSE_OK);
	dns_write_begin(&w, buf, sizeof(buf), &query);
	dns_answer_write(&room.answer, 77, &w);
	struct slice written = dns_write_end(&w);

	struct dns_name asked;
	union dns_answer_room again;
	assert_true(dns_name_set(&asked, SLICE("a.test")));
	assert_int_equal(dns_answer_read(written, &asked, DNS_TYPE_A, &rules, &again), REASON_NONE);
	assert_int_equal(again.answer.ttl, 77);
	assert_int_equal(again.answer.len, room.answer.len);
	assert_memory_equal(again.answer.data, room.answer.data, room.answer.len);
	bytes_free(&ask);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(addresses_of_the_type, setup),
		cmocka_unit_test_setup(unasked_records_are_dropped, setup),
		cmocka_unit_test_setup(t17_aliases_are_followed_in_any_order, setup),
		cmocka_unit_test_setup(t17_alias_that_leaves_the_policy, setup),
		cmocka_unit_test_setup(t17_aliases_in_a_circle, setup),
		cmocka_unit_test_setup(t17_very_many_aliases, setup),
		cmocka_unit_test_setup(t17_very_many_addresses, setup),
		cmocka_unit_test_setup(t18_private_addresses_are_removed, setup),
		cmocka_unit_test_setup(t18_addresses_of_the_rule, setup),
		cmocka_unit_test_setup(time_is_clamped, setup),
		cmocka_unit_test_setup(there_is_none, setup),
		cmocka_unit_test_setup(responses_that_are_refused, setup),
		cmocka_unit_test_setup(other_types_are_copied, setup),
		cmocka_unit_test_setup(alias_itself_is_asked_for, setup),
		cmocka_unit_test_setup(written_afresh, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
