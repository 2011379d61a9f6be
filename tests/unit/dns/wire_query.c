/* Queries: one question and at most one OPT record pass, and every other shape is told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/dns/packet.h"

static struct dns_query query;

/* Frees the packet; the query may be looked at but for its raw name. */
static enum dns_parse parse(struct bytes *b)
{
	enum dns_parse result = dns_query_parse(exact(b), &query);
	if (result != DNS_PARSE_OK && result != DNS_PARSE_BADVERS)
		assert_true(query.q.raw_name.len == 0 && query.q.name.len == 0 && !query.has_edns);
	bytes_free(b);
	return result;
}

static void plain(void **state)
{
	(void)state;
	struct bytes b = {0};
	add_query(&b, "WwW.Example.COM", DNS_TYPE_AAAA);
	assert_int_equal(dns_query_parse(exact(&b), &query), DNS_PARSE_OK);
	assert_name(&query.q.name, "www.example.com");
	assert_true(slice_eq(query.q.raw_name, slice_of(b.ptr + 12, 17)));
	assert_true(query.q.name.is_plain && query.rd && !query.cd && !query.has_edns);
	assert_int_equal(query.id, ID);
	assert_int_equal(query.q.type, DNS_TYPE_AAAA);
	assert_int_equal(query.q.class, DNS_CLASS_IN);
	assert_int_equal(query.udp_size, 512);
	assert_int_equal(query.size, b.len);
	bytes_free(&b);
}

static void edns(void **state)
{
	(void)state;
	static const struct {
		unsigned offered, taken;
	} sizes[] = {{0, 512}, {512, 512}, {1000, 1000}, {1232, 1232}, {4096, 1232}, {65535, 1232}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = {0};
		add_header(&b, 0x0010, 1, 0, 0, 1);
		add_question(&b, "a.test", DNS_TYPE_A);
		add_opt(&b, sizes[i].offered, 0, 0x8000, SLICE("\0\012\0\004abcd\0\014\0\0"));
		assert_int_equal(parse(&b), DNS_PARSE_OK);
		assert_int_equal(query.udp_size, sizes[i].taken);
		assert_true(query.has_edns && query.wants_dnssec && query.cd && !query.rd);
	}
}

static void edns_version(void **state)
{
	(void)state;
	struct bytes b = {0};
	add_header(&b, 0, 1, 0, 0, 1);
	add_question(&b, "a.test", DNS_TYPE_A);
	add_opt(&b, 1232, 1, 0, SLICE_NONE);
	assert_int_equal(parse(&b), DNS_PARSE_BADVERS);
	assert_true(query.has_edns);
	assert_name(&query.q.name, "a.test");
}

static void t19_bad_opt(void **state)
{
	(void)state;
	static const struct slice options[] = {WORD("\0"), WORD("\0\012\0"), WORD("\0\012\0\005abcd"),
					       WORD("\0\012\0\003abcd")};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct bytes b = {0};
		add_header(&b, 0, 1, 0, 0, 1);
		add_question(&b, "a.test", DNS_TYPE_A);
		add_opt(&b, 1232, 0, 0, options[i]);
		assert_int_equal(parse(&b), DNS_PARSE_FORMERR);
	}
}

/* The record behind the question: cut at each byte, with a name, of another type, twice, with bytes behind. */
static void t19_not_one_opt(void **state)
{
	(void)state;
	for (int bad = 0; bad < 15; bad++) {
		struct bytes b = {0};
		add_header(&b, 0, 1, 0, 0, bad == 14 ? 2 : 1);
		add_question(&b, "a.test", DNS_TYPE_A);
		size_t at = b.len;
		add_opt(&b, 1232, 0, 0, SLICE_NONE);
		if (bad < 11)
			b.len = at + (size_t)bad;
		else if (bad == 11)
			b.ptr[at + 2] = DNS_TYPE_A;
		else if (bad == 12)
			bytes_add_char(&b, 0);
		else if (bad == 13)
			b.ptr[at] = 1;
		else
			add_opt(&b, 1232, 0, 0, SLICE_NONE);
		assert_int_equal(parse(&b), DNS_PARSE_FORMERR);
	}
}

static void t19_header(void **state)
{
	(void)state;
	static const struct {
		unsigned flags, qd, an, ns, ar;
		enum dns_parse wanted;
	} cases[] = {
		{0x0000, 1, 0, 0, 0, DNS_PARSE_OK},          {0x0130, 1, 0, 0, 0, DNS_PARSE_OK},
		{0x8100, 1, 0, 0, 0, DNS_PARSE_DROP},        {0xa800, 1, 0, 0, 0, DNS_PARSE_DROP},
		{0x0800, 1, 0, 0, 0, DNS_PARSE_NOTIMP},      {0x2800, 1, 0, 0, 0, DNS_PARSE_NOTIMP},
		{0x7800, 9, 9, 9, 9, DNS_PARSE_NOTIMP},      {0x0400, 1, 0, 0, 0, DNS_PARSE_FORMERR},
		{0x0200, 1, 0, 0, 0, DNS_PARSE_FORMERR},     {0x0080, 1, 0, 0, 0, DNS_PARSE_FORMERR},
		{0x0040, 1, 0, 0, 0, DNS_PARSE_FORMERR},     {0x0001, 1, 0, 0, 0, DNS_PARSE_FORMERR},
		{0x0000, 0, 0, 0, 0, DNS_PARSE_FORMERR},     {0x0000, 2, 0, 0, 0, DNS_PARSE_FORMERR},
		{0x0000, 65535, 0, 0, 0, DNS_PARSE_FORMERR}, {0x0000, 1, 1, 0, 0, DNS_PARSE_FORMERR},
		{0x0000, 1, 0, 1, 0, DNS_PARSE_FORMERR},     {0x0000, 1, 0, 0, 1, DNS_PARSE_FORMERR},
		{0x0000, 1, 0, 0, 65535, DNS_PARSE_FORMERR},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = {0};
		add_header(&b, cases[i].flags, cases[i].qd, cases[i].an, cases[i].ns, cases[i].ar);
		add_question(&b, "a.test", DNS_TYPE_A);
		assert_int_equal(parse(&b), cases[i].wanted);
		assert_int_equal(query.id, ID);
		assert_int_equal(query.opcode, cases[i].flags >> 11 & 0xf);
	}
}

/* Cut anywhere, and with bytes behind. */
static void t19_length(void **state)
{
	(void)state;
	struct bytes whole = {0};
	add_query(&whole, "www.example.com", DNS_TYPE_A);
	for (size_t n = 0; n <= whole.len; n++) {
		struct bytes b = {0};
		bytes_add(&b, slice_head(bytes_slice(&whole), n));
		enum dns_parse wanted = n < 12 ? DNS_PARSE_DROP : n < whole.len ? DNS_PARSE_FORMERR : DNS_PARSE_OK;
		assert_int_equal(parse(&b), wanted);
	}
	bytes_add_char(&whole, 0);
	assert_int_equal(parse(&whole), DNS_PARSE_FORMERR);
}

/* Pointers, the reserved kinds of labels, and names of 255 and 256 bytes. */
static void t19_names(void **state)
{
	(void)state;
	static const struct slice names[] = {WORD("\300\014"),     WORD("\300\016\300\014"), WORD("\300\040"),
					     WORD("\377\377"),     WORD("\100a\0"),          WORD("\200a\0"),
					     WORD("\001a\300\014")};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bytes b = {0};
		add_header(&b, 0, 1, 0, 0, 0);
		bytes_add(&b, names[i]);
		add32(&b, 0x10001);
		assert_int_equal(parse(&b), DNS_PARSE_FORMERR);
	}
	for (size_t last = 61; last <= 62; last++) {
		struct bytes b = {0};
		add_header(&b, 0, 1, 0, 0, 0);
		for (int i = 0; i < 4; i++) {
			size_t n = i < 3 ? 63 : last;
			bytes_add_char(&b, (char)n);
			bytes_fill(&b, 'x', n);
		}
		bytes_add_char(&b, 0);
		add32(&b, 0x10001);
		assert_int_equal(parse(&b), last == 61 ? DNS_PARSE_OK : DNS_PARSE_FORMERR);
	}
}

/* What is no host is read, and marked; its text can be shown. */
static void t01_bytes_of_names(void **state)
{
	(void)state;
	static const struct {
		struct slice wire;
		const char *text;
		bool is_plain;
	} cases[] = {
		{WORD("\0"), "", false},
		{WORD("\003a_b\003-9Z\0"), "a_b.-9z", true},
		{WORD("\010allowed\0\004evil\0"), "allowed?.evil", false},
		{WORD("\010allowed.\004evil\0"), "allowed?.evil", false},
		{WORD("\002\377\376\001b\0"), "??.b", false},
		{WORD("\003a b\001*\003a\\b\0"), "a?b.*.a\\b", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = {0};
		add_header(&b, 0, 1, 0, 0, 0);
		bytes_add(&b, cases[i].wire);
		add32(&b, 0x10001);
		assert_int_equal(parse(&b), DNS_PARSE_OK);
		assert_name(&query.q.name, cases[i].text);
		assert_int_equal(query.q.name.is_plain, cases[i].is_plain);
	}
}

static void rcodes(void **state)
{
	(void)state;
	assert_int_equal(dns_parse_rcode(DNS_PARSE_OK), DNS_RCODE_NOERROR);
	assert_int_equal(dns_parse_rcode(DNS_PARSE_DROP), DNS_RCODE_FORMERR);
	assert_int_equal(dns_parse_rcode(DNS_PARSE_FORMERR), DNS_RCODE_FORMERR);
	assert_int_equal(dns_parse_rcode(DNS_PARSE_NOTIMP), DNS_RCODE_NOTIMP);
	assert_int_equal(dns_parse_rcode(DNS_PARSE_BADVERS), DNS_RCODE_BADVERS);
}

static void types(void **state)
{
	(void)state;
	char buf[DNS_TYPE_TEXT];
	assert_true(slice_eq(dns_type_text(28, buf), SLICE("AAAA")));
	assert_true(slice_eq(dns_type_text(65535, buf), SLICE("TYPE65535")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),           cmocka_unit_test(edns),       cmocka_unit_test(edns_version),
		cmocka_unit_test(t19_bad_opt),     cmocka_unit_test(t19_header), cmocka_unit_test(t19_length),
		cmocka_unit_test(t19_not_one_opt), cmocka_unit_test(t19_names),  cmocka_unit_test(t01_bytes_of_names),
		cmocka_unit_test(rcodes),          cmocka_unit_test(types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
