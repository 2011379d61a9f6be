/* Queries of DNS. Promises: only a query of one question passes. A name that is marked as plain is on the wire what its
 * text says. What is written as an error, or as an answer that refuses, is a response to the same question and no longer
 * than the query; with records it is no longer than the client takes.
 *
 * Input: one byte that says how many records are written, then the packet. */
#include "dns/wire.h"
#include "tests/fuzz/fuzz.h"

static void name_must_be_right(const struct dns_question *q)
{
	char wire[DNS_NAME_WIRE];
	PROMISE(q->name.len <= LIMIT_HOST);
	PROMISE(q->raw_name.len == (q->name.len > 0 ? q->name.len + 2u : 1u));
	for (size_t i = 0; i < q->name.len; i++)
		PROMISE(q->name.text[i] > ' ' && q->name.text[i] < 0x7f);
	if (!q->name.is_plain)
		return;
	PROMISE(dns_name_write(&q->name, wire, sizeof(wire)) == q->raw_name.len);
	for (size_t i = 0; i < q->raw_name.len; i++)
		PROMISE((unsigned char)wire[i] == ascii_lower((unsigned char)q->raw_name.ptr[i]));
}

static void answer_must_be_right(const struct dns_query *query, struct slice answer, size_t most)
{
	struct dns_response r;
	struct dns_rr rr;
	PROMISE(answer.len <= most && answer.len >= DNS_HEADER);
	if (query->q.raw_name.len == 0 || query->opcode != 0)
		return;
	PROMISE(dns_response_parse(answer, &r));
	PROMISE(r.id == query->id && slice_eq(r.q.raw_name, query->q.raw_name));
	while (r.answers > 0) {
		PROMISE(dns_response_next(&r, &rr) == DNS_NEXT_RECORD);
		PROMISE(dns_name_eq(&rr.owner, &query->q.name));
	}
}

static void answer_all(const struct dns_query *query, enum dns_parse parse, size_t records)
{
	char buf[LIMIT_DNS_UDP];
	struct dns_writer w;
	dns_write_begin(&w, buf, query->udp_size, query);
	dns_write_rcode(&w, parse == DNS_PARSE_OK ? DNS_RCODE_REFUSED : dns_parse_rcode(parse));
	dns_write_explain(&w, DNS_EXPLAIN_BLOCKED, SLICE("host.not_allowed"), false);
	answer_must_be_right(query, dns_write_end(&w), query->size);
	dns_write_begin(&w, buf, query->udp_size, query);
	for (size_t i = 0; i < records; i++)
		dns_write_a(&w, &query->q.name, 1, (const uint8_t *)"\300\000\002\001");
	dns_write_explain(&w, DNS_EXPLAIN_BLOCKED, SLICE("host.not_allowed"), true);
	answer_must_be_right(query, dns_write_end(&w), query->udp_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	size_t records = (size_t)fuzz_number(&input, 1);
	struct slice packet = fuzz_copy(input);
	struct dns_query query;
	enum dns_parse parse = dns_query_parse(packet, &query);
	if (parse == DNS_PARSE_OK || parse == DNS_PARSE_BADVERS)
		name_must_be_right(&query.q);
	else
		PROMISE(query.q.raw_name.len == 0 && !query.has_edns);
	if (parse == DNS_PARSE_OK)
		PROMISE(packet.len == 16 + query.q.raw_name.len || query.has_edns);
	PROMISE(query.udp_size >= 512 && query.udp_size <= LIMIT_DNS_UDP);
	if (parse != DNS_PARSE_DROP)
		answer_all(&query, parse, parse == DNS_PARSE_OK ? records : 0);
	fuzz_free(&packet);
	return 0;
}
