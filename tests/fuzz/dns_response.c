/* Responses of DNS, and the compression of their names. Promises: no packet makes the reader go round or beyond its end;
 * no more records come than the bound; what can be written again as an answer is read back as the same. */
#include "dns/wire.h"
#include "tests/fuzz/fuzz.h"

#define ANSWER_MAX 65535

/* A query with the same question. */
static bool ask(const struct dns_question *q, char *buf, struct dns_query *out)
{
	struct slice name = q->raw_name;
	memcpy(buf, "\0\1\1\0\0\1\0\0\0\0\0\0", DNS_HEADER);
	memcpy(buf + DNS_HEADER, name.ptr, name.len);
	memcpy(buf + DNS_HEADER + name.len, "\0\1\0\1", 4);
	return dns_query_parse(slice_of(buf, DNS_HEADER + name.len + 4), out) == DNS_PARSE_OK;
}

static void write_record(struct dns_writer *w, const struct dns_response *r, const struct dns_rr *rr)
{
	static char buf[ANSWER_MAX];
	struct slice data;
	if (rr->owner.len > 0 && !rr->owner.is_plain)
		return;
	if (rr->type == DNS_TYPE_CNAME && rr->target.is_plain)
		dns_write_cname(w, &rr->owner, rr->ttl, &rr->target);
	else if (rr->type != DNS_TYPE_CNAME && dns_rdata_expand(r, rr, buf, sizeof(buf), &data))
		dns_write_raw(w, &rr->owner, rr->type, rr->ttl, data);
}

static void record_must_be_right(struct slice packet, const struct dns_rr *rr)
{
	PROMISE(rr->owner.len <= LIMIT_HOST && rr->target.len <= LIMIT_HOST && rr->ttl <= INT32_MAX);
	PROMISE(rr->rdata.ptr >= packet.ptr && rr->rdata.ptr + rr->rdata.len <= packet.ptr + packet.len);
	PROMISE(rr->type == DNS_TYPE_CNAME || rr->target.len == 0);
}

/* What was written has as many records, all of them whole. */
static void answer_must_be_right(struct slice answer, size_t records)
{
	struct dns_response r;
	struct dns_rr rr;
	PROMISE(dns_response_parse(answer, &r) && r.answers == records);
	for (size_t i = 0; i < records; i++)
		PROMISE(dns_response_next(&r, &rr) == DNS_NEXT_RECORD);
	PROMISE(dns_response_next(&r, &rr) == DNS_NEXT_END && r.at == answer.len);
}

static void read_all(struct slice packet, struct dns_response *r, struct dns_query *query)
{
	static char buf[ANSWER_MAX];
	struct dns_writer w;
	struct dns_rr rr;
	uint32_t ttl;
	size_t n = 0;
	enum dns_next next;
	dns_write_begin(&w, buf, sizeof(buf), query);
	while ((next = dns_response_next(r, &rr)) == DNS_NEXT_RECORD) {
		PROMISE(++n <= LIMIT_DNS_RECORDS);
		record_must_be_right(packet, &rr);
		write_record(&w, r, &rr);
	}
	PROMISE(dns_response_next(r, &rr) == next);
	PROMISE(next == DNS_NEXT_END || !dns_response_negative_ttl(r, &ttl));
	(void)dns_response_negative_ttl(r, &ttl);
	size_t written = w.answers;
	answer_must_be_right(dns_write_end(&w), written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice packet = fuzz_copy(slice_of(data, size));
	struct dns_response r;
	struct dns_query query;
	char asked[DNS_HEADER + DNS_NAME_WIRE + 4];
	if (dns_response_parse(packet, &r)) {
		PROMISE(ask(&r.q, asked, &query));
		read_all(packet, &r, &query);
	}
	fuzz_free(&packet);
	return 0;
}
