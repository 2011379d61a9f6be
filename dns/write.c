/* Answers, written afresh: the question as it was asked, the records, and an OPT of our own when the client sent one.
 * Nothing of what an upstream or a client wrote into other places comes back. */
#include "dns/wire.h"

#include "dns/octets.h"

#define EDNS_ERROR 15 /* the option of RFC 8914 */
#define OPT_SIZE 11
#define RECORD_SIZE 10 /* behind the name */
#define POINTER 0xc000
#define POINTER_MAX 0x3fff
#define QUESTION_NAME (POINTER | DNS_HEADER)

void dns_write_begin(struct dns_writer *w, char *buf, size_t cap, const struct dns_query *query)
{
	struct slice name = query->q.raw_name;
	w->query = query;
	w->buf = buf;
	w->cap = cap - (query->has_edns ? OPT_SIZE : 0);
	w->len = DNS_HEADER;
	w->rcode = DNS_RCODE_NOERROR;
	w->answers = 0;
	w->is_truncated = w->has_explanation = false;
	w->target_at = 0;
	if (name.len == 0)
		return;
	memcpy(buf + w->len, name.ptr, name.len);
	w->len += name.len;
	octets_put16(buf + w->len, query->q.type);
	octets_put16(buf + w->len + 2, query->q.class);
	w->len += 4;
}

void dns_write_rcode(struct dns_writer *w, enum dns_rcode rcode)
{
	w->rcode = rcode;
}

/* The bytes written at `at`, or 0 when they do not fit. */
static size_t write_owner(struct dns_writer *w, size_t at, const struct dns_name *owner)
{
	uint16_t pointer;
	if (dns_name_eq(owner, &w->query->q.name))
		pointer = QUESTION_NAME;
	else if (w->target_at != 0 && dns_name_eq(owner, &w->target))
		pointer = POINTER | w->target_at;
	else
		return dns_name_write(owner, w->buf + at, w->cap - at);
	if (w->cap - at < 2)
		return 0;
	octets_put16(w->buf + at, pointer);
	return 2;
}

/* Room for the data of a record, or NULL when it does not fit: then nothing was written, and nothing will be. */
static char *add_record(struct dns_writer *w, const struct dns_name *owner, uint16_t type, uint32_t ttl, size_t size)
{
	if (w->is_truncated)
		return NULL;
	size_t n = write_owner(w, w->len, owner);
	if (n == 0 || size > UINT16_MAX || w->cap - w->len - n < RECORD_SIZE + size) {
		w->is_truncated = true;
		return NULL;
	}
	char *p = w->buf + w->len + n;
	octets_put16(p, type);
	octets_put16(p + 2, DNS_CLASS_IN);
	octets_put32(p + 4, ttl);
	octets_put16(p + 8, (uint16_t)size);
	w->len += n + RECORD_SIZE + size;
	w->answers++;
	return p + RECORD_SIZE;
}

void dns_write_raw(struct dns_writer *w, const struct dns_name *owner, uint16_t type, uint32_t ttl, struct slice rdata)
{
	char *p = add_record(w, owner, type, ttl, rdata.len);
	if (p && rdata.len > 0)
		memcpy(p, rdata.ptr, rdata.len);
}

void dns_write_a(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const uint8_t addr[4])
{
	dns_write_raw(w, owner, DNS_TYPE_A, ttl, slice_of(addr, 4));
}

void dns_write_aaaa(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const uint8_t addr[16])
{
	dns_write_raw(w, owner, DNS_TYPE_AAAA, ttl, slice_of(addr, 16));
}

void dns_write_cname(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const struct dns_name *target)
{
	char wire[DNS_NAME_WIRE];
	size_t n = dns_name_write(target, wire, sizeof(wire));
	char *p = add_record(w, owner, DNS_TYPE_CNAME, ttl, n);
	if (!p)
		return;
	memcpy(p, wire, n);
	w->target_at = p - w->buf <= POINTER_MAX ? (uint16_t)(p - w->buf) : 0;
	w->target = *target;
}

void dns_write_explain(struct dns_writer *w, enum dns_explain code, struct slice text, bool is_verified)
{
	w->has_explanation = true;
	w->is_verified = is_verified;
	w->explain = code;
	w->explanation = text;
}

/* The option with as much as may be said: code and text, or the code alone, or nothing. */
static size_t write_explanation(struct dns_writer *w, char *p)
{
	size_t room = w->cap - w->len; /* the OPT record has its own */
	if (!w->has_explanation)
		return 0;
	if (!w->is_verified) {
		size_t unexplained = w->len + OPT_SIZE;
		size_t growth = w->query->size > unexplained ? w->query->size - unexplained : 0;
		room = growth < room ? growth : room;
	}
	struct slice text = w->explanation.len + 6 <= room ? w->explanation : SLICE_NONE;
	if (room < 6)
		return 0;
	octets_put16(p, EDNS_ERROR);
	octets_put16(p + 2, (uint16_t)(2 + text.len));
	octets_put16(p + 4, (uint16_t)w->explain);
	if (text.len > 0)
		memcpy(p + 6, text.ptr, text.len);
	return 6 + text.len;
}

static void write_opt(struct dns_writer *w)
{
	char *p = w->buf + w->len;
	size_t n = write_explanation(w, p + OPT_SIZE);
	p[0] = 0;
	octets_put16(p + 1, DNS_TYPE_OPT);
	octets_put16(p + 3, LIMIT_DNS_UDP);
	p[5] = (char)(w->rcode >> 4);
	p[6] = 0; /* version */
	octets_put16(p + 7, w->query->wants_dnssec ? DNS_BIT_DO : 0);
	octets_put16(p + 9, (uint16_t)n);
	w->len += OPT_SIZE + n;
}

struct slice dns_write_end(struct dns_writer *w)
{
	const struct dns_query *q = w->query;
	char *p = w->buf;
	unsigned flags = DNS_BIT_QR | DNS_BIT_RA | (unsigned)q->opcode << 11 | ((unsigned)w->rcode & 0xf);
	flags |= (w->is_truncated ? DNS_BIT_TC : 0u) | (q->rd ? DNS_BIT_RD : 0u) | (q->cd ? DNS_BIT_CD : 0u);
	if (q->has_edns)
		write_opt(w);
	octets_put16(p, q->id);
	octets_put16(p + 2, (uint16_t)flags);
	octets_put16(p + 4, q->q.raw_name.len > 0);
	octets_put16(p + 6, w->answers);
	octets_put16(p + 8, 0);
	octets_put16(p + 10, q->has_edns);
	return slice_of(p, w->len);
}
