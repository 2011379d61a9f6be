/* The shared corpus of DNS packets: those that other projects have met, and one for each rule that can be broken. Each
 * is read as a query, cut at every length when it is short, and as a response. What another parser takes for a query of
 * one question is one here, and the answer to any of them is no longer than it. CAGE_CORPORA says where the corpus is;
 * without it the test is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>

#include "tests/unit/corpus.h"
#include "tests/unit/dns/packet.h"

#define LINE_MAX_BYTES MIB(1)
#define CUT_MAX 1000 /* longer packets are not cut at every byte */

static void add_base64(struct bytes *b, const char *text)
{
	unsigned bits = 0, n = 0;
	for (; *text && *text != '='; text++) {
		int digit = ascii_base64((unsigned char)*text);
		assert_true(digit >= 0);
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		n += 6;
		if (n >= 8) {
			n -= 8;
			bytes_add_char(b, (char)(bits >> n & 0xff));
		}
	}
}

static enum dns_parse answer(struct slice packet)
{
	struct dns_query query;
	struct dns_writer w;
	char buf[LIMIT_DNS_UDP];
	enum dns_parse parse = dns_query_parse(packet, &query);
	if (parse == DNS_PARSE_DROP)
		return parse;
	dns_write_begin(&w, buf, query.udp_size, &query);
	dns_write_rcode(&w, parse == DNS_PARSE_OK ? DNS_RCODE_REFUSED : dns_parse_rcode(parse));
	dns_write_explain(&w, DNS_EXPLAIN_BLOCKED, SLICE("host.not_allowed"), false);
	assert_true(dns_write_end(&w).len <= packet.len);
	return parse;
}

static void read_as_response(struct slice packet)
{
	struct dns_response r;
	struct dns_rr rr;
	char buf[UINT16_MAX];
	struct slice out;
	uint32_t ttl;
	size_t n = 0;
	if (!dns_response_parse(packet, &r))
		return;
	while (dns_response_next(&r, &rr) == DNS_NEXT_RECORD) {
		assert_true(++n <= LIMIT_DNS_RECORDS);
		(void)dns_rdata_expand(&r, &rr, buf, sizeof(buf), &out);
	}
	(void)dns_response_negative_ttl(&r, &ttl);
}

static void look_at_cuts(struct slice packet)
{
	for (size_t n = 0; n < packet.len && n < CUT_MAX; n++) {
		struct bytes cut = {0};
		bytes_add(&cut, slice_head(packet, n));
		answer(exact(&cut));
		read_as_response(bytes_slice(&cut));
		bytes_free(&cut);
	}
}

/* What a constructed packet has to give. All others of these are queries, if strange ones. */
static enum dns_parse wanted_of(const char *name)
{
	static const struct {
		const char *name;
		enum dns_parse parse;
	} known[] = {
		{"anomaly/header only 11 bytes", DNS_PARSE_DROP},
		{"anomaly/opcode UPDATE", DNS_PARSE_NOTIMP},
		{"anomaly/opcode NOTIFY", DNS_PARSE_NOTIMP},
		{"anomaly/OPT version 1", DNS_PARSE_BADVERS},
		{"anomaly/name 255 octets max", DNS_PARSE_OK},
		{"anomaly/class CH version.bind TXT", DNS_PARSE_OK},
		{"anomaly/qtype ANY", DNS_PARSE_OK},
		{"anomaly/qtype AXFR", DNS_PARSE_OK},
		{"anomaly/qtype NULL", DNS_PARSE_OK},
		{"anomaly/qtype TXT tunnel label", DNS_PARSE_OK},
		{"anomaly/NUL in label", DNS_PARSE_OK},
		{"anomaly/dot in label", DNS_PARSE_OK},
		{"anomaly/uppercase 0x20 name", DNS_PARSE_OK},
		{"anomaly/non-ascii label", DNS_PARSE_OK},
		{"anomaly/EDNS client-subnet", DNS_PARSE_OK},
		{"anomaly/EDNS padding 400 bytes", DNS_PARSE_OK},
		{"pdns/basic.raw", DNS_PARSE_OK},
		{"pdns/ecs.raw", DNS_PARSE_OK},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].parse;
	return DNS_PARSE_FORMERR;
}

static void look_at(const char *name, struct slice packet)
{
	enum dns_parse got = answer(packet), wanted = wanted_of(name);
	if (packet.len >= 12 && (packet.ptr[2] & 0x80))
		wanted = DNS_PARSE_DROP;
	else if (packet.len >= 12 && (packet.ptr[2] & 0x78))
		wanted = DNS_PARSE_NOTIMP;
	if (got != wanted)
		fail_msg("%s: got %d, wanted %d", name, (int)got, (int)wanted);
	read_as_response(packet);
	if (packet.len <= CUT_MAX)
		look_at_cuts(packet);
}

static void look_at_line(const char *line)
{
	struct bytes packet = {0};
	json_t *item = json_loads(line, 0, NULL);
	const char *name = json_string_value(json_object_get(item, "name"));
	const char *base64 = json_string_value(json_object_get(item, "b64"));
	assert_true(name && base64);
	add_base64(&packet, base64);
	assert_int_equal(packet.len, json_integer_value(json_object_get(item, "len")));
	look_at(name, exact(&packet));
	bytes_free(&packet);
	json_decref(item);
}

static void t19_corpus(void **state)
{
	(void)state;
	size_t n = 0;
	FILE *f = corpus_open("dns_packets");
	char *line = malloc(LINE_MAX_BYTES);
	assert_non_null(line);
	for (; fgets(line, LINE_MAX_BYTES, f); n++)
		look_at_line(line);
	assert_true(n >= 130);
	free(line);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t19_corpus)};
	return corpus_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
