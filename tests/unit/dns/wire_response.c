/* Responses: records one after the other, names through pointers that go backwards only, and bounds that hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/dns/packet.h"

#define QUESTION 12 /* where its name is */

static struct dns_response response;
static struct dns_rr rr;

static void begin(struct bytes *b, const char *name, unsigned answers, unsigned authority)
{
	add_header(b, 0x8180, 1, answers, authority, 0);
	add_question(b, name, DNS_TYPE_A);
}

static void chain(void **state)
{
	(void)state;
	struct bytes b = {0};
	begin(&b, "WwW.a.test", 2, 0);
	add_pointer(&b, QUESTION);
	add_record(&b, DNS_TYPE_CNAME, 60, 6);
	size_t target = b.len;
	add_labels(&b, "CDN");
	add_pointer(&b, QUESTION + 4);
	add_pointer(&b, target);
	add_record(&b, DNS_TYPE_A, 0x80000001, 4);
	bytes_add(&b, SLICE("\300\000\002\001"));
	assert_true(dns_response_parse(exact(&b), &response));
	assert_int_equal(response.id, ID);
	assert_int_equal(response.rcode, 0);
	assert_true(slice_eq(slice_head(response.q.raw_name, 4), SLICE("\003WwW")));
	assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "www.a.test");
	assert_name(&rr.target, "cdn.a.test");
	assert_int_equal(rr.ttl, 60);
	assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_RECORD);
	assert_name(&rr.owner, "cdn.a.test");
	assert_int_equal(rr.type, DNS_TYPE_A);
	assert_int_equal(rr.class, DNS_CLASS_IN);
	assert_int_equal(rr.ttl, 0);
	assert_true(slice_eq(rr.rdata, SLICE("\300\000\002\001")) && rr.target.len == 0);
	assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_END);
	assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_END);
	bytes_free(&b);
}

static void flags(void **state)
{
	(void)state;
	static const struct {
		unsigned flags, qd, an;
		bool wanted;
	} cases[] = {{0x8180, 1, 0, true},
		     {0x8383, 1, LIMIT_DNS_RECORDS, true},
		     {0x0180, 1, 0, false},
		     {0xa180, 1, 0, false},
		     {0x8180, 0, 0, false},
		     {0x8180, 2, 0, false},
		     {0x8180, 1, LIMIT_DNS_RECORDS + 1, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = {0};
		add_header(&b, cases[i].flags, cases[i].qd, cases[i].an, 0, 0);
		add_question(&b, "a.test", DNS_TYPE_A);
		assert_int_equal(dns_response_parse(exact(&b), &response), cases[i].wanted);
		if (cases[i].wanted)
			assert_int_equal(response.rcode, cases[i].flags & 0xf);
		if (cases[i].wanted)
			assert_int_equal(response.is_truncated, (cases[i].flags & 0x0200) != 0);
		bytes_free(&b);
	}
}

/* A response that is cut anywhere is either not one or ends as malformed. */
static void t17_cut(void **state)
{
	(void)state;
	struct bytes whole = {0};
	begin(&whole, "a.test", 1, 0);
	add_pointer(&whole, QUESTION);
	add_record(&whole, DNS_TYPE_CNAME, 60, 4);
	add_labels(&whole, "b");
	add_pointer(&whole, QUESTION + 2);
	for (size_t n = 0; n < whole.len; n++) {
		struct bytes b = {0};
		bytes_add(&b, slice_head(bytes_slice(&whole), n));
		if (dns_response_parse(exact(&b), &response)) {
			assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_MALFORMED);
			assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_MALFORMED);
		}
		bytes_free(&b);
	}
	bytes_free(&whole);
}

/* Owner names that are no names: to itself, forwards, into the header, beyond the end, in a circle of two. */
static void t19_pointers(void **state)
{
	(void)state;
	static const struct slice owners[] = {WORD("\300\030"),      WORD("\300\031"),         WORD("\300\013"),
					      WORD("\377\377"),      WORD("\300\032\300\030"), WORD("\300"),
					      WORD("\001a\300\030"), WORD("\001a\300\031"),    WORD("\100"),
					      WORD("\200\0")};
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		struct bytes b = {0};
		begin(&b, "a.test", 1, 0);
		assert_int_equal(b.len, 030);
		bytes_add(&b, owners[i]);
		if (owners[i].len > 1)
			add_record(&b, DNS_TYPE_A, 60, 0);
		assert_true(dns_response_parse(exact(&b), &response));
		assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_MALFORMED);
		bytes_free(&b);
	}
}

/* A staircase of pointers, each to the one before. */
static void t19_jumps(void **state)
{
	(void)state;
	for (size_t steps = LIMIT_DNS_JUMPS; steps <= LIMIT_DNS_JUMPS + 1; steps++) {
		struct bytes b = {0};
		begin(&b, "a.test", 2, 0);
		add_pointer(&b, QUESTION);
		add_record(&b, DNS_TYPE_NULL, 0, 2 * (steps - 1));
		add_pointer(&b, QUESTION);
		for (size_t i = 2; i < steps; i++)
			add_pointer(&b, b.len - 2);
		add_pointer(&b, b.len - 2);
		add_record(&b, DNS_TYPE_A, 0, 0);
		assert_true(dns_response_parse(exact(&b), &response));
		assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_RECORD);
		assert_int_equal(dns_response_next(&response, &rr),
				 steps > LIMIT_DNS_JUMPS ? DNS_NEXT_MALFORMED : DNS_NEXT_RECORD);
		bytes_free(&b);
	}
}

/* The target of a CNAME ends where its data ends. */
static void t17_targets(void **state)
{
	(void)state;
	for (size_t size = 0; size <= 5; size++) {
		struct bytes b = {0};
		begin(&b, "a.test", 1, 0);
		add_pointer(&b, QUESTION);
		add_record(&b, DNS_TYPE_CNAME, 60, size);
		add_labels(&b, "b");
		add_pointer(&b, QUESTION + 2);
		bytes_add_char(&b, 0);
		assert_true(dns_response_parse(exact(&b), &response));
		assert_int_equal(dns_response_next(&response, &rr), size == 4 ? DNS_NEXT_RECORD : DNS_NEXT_MALFORMED);
		bytes_free(&b);
	}
}

static void add_soa(struct bytes *b, uint32_t ttl, uint32_t minimum, size_t size)
{
	add_pointer(b, QUESTION);
	add_record(b, DNS_TYPE_SOA, ttl, size);
	add_pointer(b, QUESTION);
	add_labels(b, "x");
	add_pointer(b, QUESTION);
	for (int i = 0; i < 4; i++)
		add32(b, 1);
	add32(b, minimum);
}

static void negative(void **state)
{
	(void)state;
	static const struct {
		uint32_t ttl, minimum, wanted;
		size_t size;
		bool found;
	} cases[] = {
		{300, 60, 60, 26, true}, {60, 300, 60, 26, true}, {300, 60, 0, 25, false}, {300, 60, 0, 27, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = {0};
		uint32_t ttl = 0;
		begin(&b, "a.test", 0, 2);
		add_pointer(&b, QUESTION);
		add_record(&b, DNS_TYPE_NS, 1, 0);
		add_soa(&b, cases[i].ttl, cases[i].minimum, cases[i].size);
		assert_true(dns_response_parse(exact(&b), &response));
		assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_END);
		assert_int_equal(dns_response_negative_ttl(&response, &ttl), cases[i].found);
		assert_int_equal(ttl, cases[i].wanted);
		bytes_free(&b);
	}
}

static void negative_without_soa(void **state)
{
	(void)state;
	struct bytes b = {0};
	uint32_t ttl;
	begin(&b, "a.test", 0, 65535);
	add_pointer(&b, QUESTION);
	add_record(&b, DNS_TYPE_NS, 1, 0);
	assert_true(dns_response_parse(exact(&b), &response));
	assert_false(dns_response_negative_ttl(&response, &ttl));
	response.answers = 1;
	assert_false(dns_response_negative_ttl(&response, &ttl));
	bytes_free(&b);
}

#define TWENTY "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5"

/* Names in data are written out; data with none is copied. */
static void expand(void **state)
{
	(void)state;
	static const struct {
		unsigned type;
		struct slice data, wanted;
	} cases[] = {
		{DNS_TYPE_TXT, WORD("\003abc"), WORD("\003abc")},
		{DNS_TYPE_TXT, WORD(""), WORD("")},
		{DNS_TYPE_PTR, WORD("\300\014"), WORD("\001a\004test\0")},
		{DNS_TYPE_MX, WORD("\0\012\001m\300\014"), WORD("\0\012\001m\001a\004test\0")},
		{DNS_TYPE_MX, WORD("\0\0\0"), WORD("\0\0\0")},
		{DNS_TYPE_SRV, WORD("\0\1\0\2\0\3\300\016"), WORD("\0\1\0\2\0\3\004test\0")},
		{DNS_TYPE_MX, WORD("\0\012"), {NULL, 0}},
		{DNS_TYPE_MX, WORD("\0\012\001m"), {NULL, 0}},
		{DNS_TYPE_NS, WORD("\001.\0"), {NULL, 0}},
		{DNS_TYPE_SOA, WORD("\300\014\001h\300\016" TWENTY), WORD("\001a\004test\0\001h\004test\0" TWENTY)},
		{DNS_TYPE_SOA, WORD("\300\014\001h\300\016" TWENTY "x"), {NULL, 0}},
		{DNS_TYPE_SOA, WORD("\300\014" TWENTY), {NULL, 0}},
		{DNS_TYPE_NAPTR, WORD("\0\1\0\2\001s\003abc\0\300\016"), WORD("\0\1\0\2\001s\003abc\0\004test\0")},
		{DNS_TYPE_NAPTR, WORD("\0\1\0\2\001s\003abc\0\0"), WORD("\0\1\0\2\001s\003abc\0\0")},
		{DNS_TYPE_NAPTR, WORD("\0\1\0\2\001s\003abc\0"), {NULL, 0}},
		{DNS_TYPE_NAPTR, WORD("\0\1\0\2\001s\077abc\0\0"), {NULL, 0}},
		{DNS_TYPE_NAPTR, WORD("\0\1\0"), {NULL, 0}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = {0};
		char buf[64];
		struct slice out;
		begin(&b, "a.test", 1, 0);
		add_pointer(&b, QUESTION);
		add_record(&b, cases[i].type, 60, cases[i].data.len);
		bytes_add(&b, cases[i].data);
		assert_true(dns_response_parse(exact(&b), &response));
		assert_int_equal(dns_response_next(&response, &rr), DNS_NEXT_RECORD);
		bool good = dns_rdata_expand(&response, &rr, buf, sizeof(buf), &out);
		assert_int_equal(good, cases[i].wanted.ptr != NULL);
		if (good)
			assert_true(slice_eq(out, cases[i].wanted));
		if (good && out.len > 0)
			assert_false(dns_rdata_expand(&response, &rr, buf, out.len - 1, &out));
		bytes_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain),        cmocka_unit_test(flags),     cmocka_unit_test(t17_cut),
		cmocka_unit_test(t19_pointers), cmocka_unit_test(t19_jumps), cmocka_unit_test(t17_targets),
		cmocka_unit_test(negative),     cmocka_unit_test(expand),    cmocka_unit_test(negative_without_soa),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
