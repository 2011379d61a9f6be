/* Answers: what is written is read back by the reader of responses, and is never longer than it may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/dns/packet.h"

static struct bytes asked;
static struct dns_query query;
static struct dns_writer w;
static char buf[LIMIT_DNS_UDP];

static int teardown(void **state)
{
	(void)state;
	bytes_free(&asked);
	return 0;
}

/* edns: the size offered, or 0 for none; with so many bytes of padding. */
static void ask(const char *name, unsigned edns, size_t padding)
{
	struct bytes option = {0};
	add_header(&asked, 0x0110, 1, 0, 0, edns ? 1 : 0);
	add_question(&asked, name, DNS_TYPE_A);
	if (padding > 0) {
		add16(&option, 12);
		add16(&option, (unsigned)padding);
		bytes_fill(&option, 0, padding);
	}
	if (edns)
		add_opt(&asked, edns, 0, 0x8000, bytes_slice(&option));
	bytes_free(&option);
	assert_int_equal(dns_query_parse(exact(&asked), &query), DNS_PARSE_OK);
	dns_write_begin(&w, buf, query.udp_size, &query);
}

static void set(struct dns_name *name, const char *text)
{
	assert_true(dns_name_set(name, slice_str(text)));
}

static struct slice end(void)
{
	struct slice out = dns_write_end(&w);
	assert_true(out.len <= query.udp_size);
	return out;
}

static void records(void **state)
{
	(void)state;
	struct dns_name cdn, far;
	struct dns_response r;
	struct dns_rr rr;
	static const uint8_t six[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
	ask("WwW.a.test", 0, 0);
	set(&cdn, "cdn.b.test");
	set(&far, "far.c.test");
	dns_write_cname(&w, &query.q.name, 60, &cdn);
	dns_write_cname(&w, &cdn, 50, &far);
	dns_write_a(&w, &far, 40, (const uint8_t *)"\300\000\002\001");
	dns_write_aaaa(&w, &far, 30, six);
	dns_write_raw(&w, &cdn, DNS_TYPE_TXT, 20, SLICE("\003abc"));
	struct slice out = end();
	assert_memory_equal(out.ptr, "\x12\x34\x81\x90\0\1\0\5\0\0\0\0\003WwW", 16);
	assert_int_equal(out.len, 12 + 16 + (12 + 12) + (2 + 10 + 12) + 16 + 28 + (12 + 10 + 4));
	assert_true(dns_response_parse(out, &r));
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "www.a.test");
	assert_name(&rr.target, "cdn.b.test");
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "cdn.b.test");
	assert_name(&rr.target, "far.c.test");
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "far.c.test");
	assert_true(rr.type == DNS_TYPE_A && rr.ttl == 40 && slice_eq(rr.rdata, SLICE("\300\000\002\001")));
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_RECORD);
	assert_true(rr.type == DNS_TYPE_AAAA && slice_eq(rr.rdata, slice_of(six, 16)));
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "cdn.b.test");
	assert_true(rr.type == DNS_TYPE_TXT && slice_eq(rr.rdata, SLICE("\003abc")));
	assert_int_equal(dns_response_next(&r, &rr), DNS_NEXT_END);
}

/* The client's options do not come back (T19). */
static void t19_options_are_not_echoed(void **state)
{
	(void)state;
	ask("a.test", 4096, 40);
	struct slice out = end();
	assert_int_equal(out.len, 12 + 12 + 11);
	assert_memory_equal(out.ptr + 10, "\0\1", 2);
	assert_memory_equal(out.ptr + 24, "\0\0\051\004\320\0\0\x80\0\0\0", 11);
}

static void explained(void **state)
{
	(void)state;
	ask("a.test", 1232, 0);
	dns_write_rcode(&w, DNS_RCODE_REFUSED);
	dns_write_explain(&w, DNS_EXPLAIN_BLOCKED, SLICE("host.not_allowed"), true);
	struct slice out = end();
	assert_int_equal(out.ptr[3] & 0xf, DNS_RCODE_REFUSED);
	assert_int_equal(out.len, 12 + 12 + 11 + 6 + 16);
	assert_memory_equal(out.ptr + 33, "\0\026\0\017\0\022\0\017host.not_allowed", 24);
}

static void explained_without_edns(void **state)
{
	(void)state;
	ask("a.test", 0, 0);
	dns_write_explain(&w, DNS_EXPLAIN_BLOCKED, SLICE("host.not_allowed"), true);
	assert_int_equal(end().len, query.size);
}

/* To somebody who may have made up an address, an explanation never makes an answer longer than the query. */
static void t19_explanations_do_not_amplify(void **state)
{
	(void)state;
	for (size_t padding = 0; padding < 30; padding++) {
		ask("a.test", 1232, padding);
		dns_write_explain(&w, DNS_EXPLAIN_FILTERED, SLICE("name.suspicious"), false);
		struct slice out = end();
		assert_true(out.len <= query.size);
		size_t option = padding ? 4 + padding : 0;
		assert_int_equal(out.len, 35 + (option < 6 ? 0 : option < 21 ? 6 : 21));
		bytes_free(&asked);
	}
}

static void bad_version(void **state)
{
	(void)state;
	add_header(&asked, 0, 1, 0, 0, 1);
	add_question(&asked, "a.test", DNS_TYPE_A);
	add_opt(&asked, 1232, 1, 0, SLICE_NONE);
	enum dns_parse parse = dns_query_parse(exact(&asked), &query);
	dns_write_begin(&w, buf, query.udp_size, &query);
	dns_write_rcode(&w, dns_parse_rcode(parse));
	struct slice out = end();
	assert_int_equal(out.len, 35);
	assert_memory_equal(out.ptr + 2, "\x80\x80", 2);
	assert_memory_equal(out.ptr + 29, "\1\0", 2);
}

/* Of what could not be read nothing is repeated but the id, the opcode and rd. */
static void bad_queries(void **state)
{
	(void)state;
	add_header(&asked, 0x2900, 1, 0, 0, 1);
	bytes_fill(&asked, 'x', 100);
	enum dns_parse parse = dns_query_parse(exact(&asked), &query);
	dns_write_begin(&w, buf, query.udp_size, &query);
	dns_write_rcode(&w, dns_parse_rcode(parse));
	struct slice out = end();
	assert_true(slice_eq(out, SLICE("\x12\x34\xa9\x84\0\0\0\0\0\0\0\0")));
}

/* What does not fit is left out from there on, and the answer says so. */
static void truncated(void **state)
{
	(void)state;
	for (unsigned edns = 0; edns <= 1232; edns += 77) {
		struct dns_response r;
		struct dns_rr rr;
		size_t n = 0;
		ask("a.test", edns, 0);
		for (int i = 0; i < 60; i++)
			dns_write_aaaa(&w, &query.q.name, 1, (const uint8_t *)"0123456789abcdef");
		dns_write_raw(&w, &query.q.name, DNS_TYPE_TXT, 1, SLICE_NONE);
		dns_write_explain(&w, DNS_EXPLAIN_OTHER, SLICE("host.not_allowed"), true);
		struct slice out = end();
		assert_true(dns_response_parse(out, &r));
		assert_true(r.is_truncated);
		while (dns_response_next(&r, &rr) == DNS_NEXT_RECORD)
			n += rr.type == DNS_TYPE_AAAA;
		assert_int_equal(r.answers, 0);
		assert_int_equal(n, ((edns ? query.udp_size - 11u : 512u) - 24) / 28);
		bytes_free(&asked);
	}
}

/* The longest name in the smallest answer. */
static void longest(void **state)
{
	(void)state;
	char text[LIMIT_HOST + 1];
	struct dns_name name;
	memset(text, 'x', LIMIT_HOST);
	text[63] = text[127] = text[191] = '.';
	text[LIMIT_HOST] = 0;
	ask(text, 512, 0);
	set(&name, text);
	assert_true(dns_name_eq(&name, &query.q.name));
	name.text[0] = 'y';
	dns_write_cname(&w, &query.q.name, 1, &name);
	assert_true(w.is_truncated);
	dns_write_a(&w, &query.q.name, 1, (const uint8_t *)"0123");
	struct slice out = end();
	assert_int_equal(out.len, 12 + 259 + 11);
}

static void names(void **state)
{
	(void)state;
	struct dns_name name;
	char wire[16];
	static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a b", "a.b*"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(dns_name_set(&name, slice_str(bad[i])));
	char label[LIMIT_LABEL + 2];
	memset(label, 'x', sizeof(label));
	assert_true(dns_name_set(&name, slice_of(label, LIMIT_LABEL)));
	assert_false(dns_name_set(&name, slice_of(label, LIMIT_LABEL + 1)));
	set(&name, "A.b");
	assert_int_equal(dns_name_write(&name, wire, 5), 5);
	assert_memory_equal(wire, "\001a\001b\0", 5);
	assert_int_equal(dns_name_write(&name, wire, 4), 0);
	name.len = 0;
	assert_int_equal(dns_name_write(&name, wire, 1), 1);
	assert_int_equal(dns_name_write(&name, wire, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(records, teardown),
		cmocka_unit_test_teardown(t19_options_are_not_echoed, teardown),
		cmocka_unit_test_teardown(explained, teardown),
		cmocka_unit_test_teardown(explained_without_edns, teardown),
		cmocka_unit_test_teardown(t19_explanations_do_not_amplify, teardown),
		cmocka_unit_test_teardown(bad_version, teardown),
		cmocka_unit_test_teardown(bad_queries, teardown),
		cmocka_unit_test_teardown(truncated, teardown),
		cmocka_unit_test_teardown(longest, teardown),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
