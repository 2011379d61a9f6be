/* Queries and responses off the wire. Of a query everything has to be as RFC 1035 and 6891 have it, since whoever sends
 * something else tries something; of a response only what will be used is read, and all of that is checked. */
#include "dns/wire.h"

#include "dns/octets.h"

#define UDP_SIZE 512 /* without EDNS */
#define ONLY_IN_RESPONSES (DNS_BIT_AA | DNS_BIT_TC | DNS_BIT_RA | DNS_BIT_Z | DNS_BITS_RCODE)

struct header {
	uint16_t id, flags, questions, answers, authority, additional;
};

/* The packet has DNS_HEADER bytes. */
static struct header read_header(const char *p)
{
	return (struct header){
		.id = octets_get16(p),
		.flags = octets_get16(p + 2),
		.questions = octets_get16(p + 4),
		.answers = octets_get16(p + 6),
		.authority = octets_get16(p + 8),
		.additional = octets_get16(p + 10),
	};
}

/* The first question is never compressed: there is nothing before it that a pointer could lead to. */
static bool read_question(struct slice packet, size_t *at, struct dns_question *q)
{
	size_t start = *at;
	if (!dns_name_read(packet, at, &q->name) || packet.len - *at < 4)
		return false;
	q->raw_name = slice_of(packet.ptr + start, *at - start);
	q->type = octets_get16(packet.ptr + *at);
	q->class = octets_get16(packet.ptr + *at + 2);
	*at += 4;
	return true;
}

static bool options_are_whole(struct slice options)
{
	while (options.len > 0) {
		if (options.len < 4)
			return false;
		size_t len = octets_get16(options.ptr + 2);
		if (len > options.len - 4)
			return false;
		options = slice_from(options, 4 + len);
	}
	return true;
}

static uint16_t clamp_size(uint16_t size)
{
	if (size < UDP_SIZE)
		return UDP_SIZE;
	return size > LIMIT_DNS_UDP ? LIMIT_DNS_UDP : size;
}

/* All that may be behind the question: an OPT record, up to the last byte. */
static enum dns_parse read_opt(struct slice opt, struct dns_query *out)
{
	if (opt.len < 11 || opt.ptr[0] != 0 || octets_get16(opt.ptr + 1) != DNS_TYPE_OPT)
		return DNS_PARSE_FORMERR;
	if (octets_get16(opt.ptr + 9) != opt.len - 11 || !options_are_whole(slice_from(opt, 11)))
		return DNS_PARSE_FORMERR;
	out->has_edns = true;
	out->udp_size = clamp_size(octets_get16(opt.ptr + 3));
	out->wants_dnssec = octets_get16(opt.ptr + 7) & DNS_BIT_DO;
	return opt.ptr[6] == 0 ? DNS_PARSE_OK : DNS_PARSE_BADVERS;
}

static enum dns_parse read_body(struct slice packet, const struct header *h, struct dns_query *out)
{
	size_t at = DNS_HEADER;
	if (h->flags & ONLY_IN_RESPONSES)
		return DNS_PARSE_FORMERR;
	if (h->questions != 1 || h->answers != 0 || h->authority != 0 || h->additional > 1)
		return DNS_PARSE_FORMERR;
	if (!read_question(packet, &at, &out->q))
		return DNS_PARSE_FORMERR;
	if (h->additional == 1)
		return read_opt(slice_from(packet, at), out);
	return at == packet.len ? DNS_PARSE_OK : DNS_PARSE_FORMERR;
}

/* What an answer does not repeat. */
static void forget_question(struct dns_query *q)
{
	q->has_edns = false;
	q->udp_size = UDP_SIZE;
	q->q.raw_name = SLICE_NONE;
	q->q.name.len = 0;
	q->q.name.is_plain = false;
}

enum dns_parse dns_query_parse(struct slice packet, struct dns_query *out)
{
	out->size = packet.len;
	out->q.type = out->q.class = 0;
	out->wants_dnssec = false;
	forget_question(out);
	if (packet.len < DNS_HEADER)
		return DNS_PARSE_DROP;
	struct header h = read_header(packet.ptr);
	out->id = h.id;
	out->opcode = (uint8_t)((h.flags & DNS_BITS_OPCODE) >> 11);
	out->rd = h.flags & DNS_BIT_RD;
	out->cd = h.flags & DNS_BIT_CD;
	if (h.flags & DNS_BIT_QR)
		return DNS_PARSE_DROP;
	if (out->opcode != 0)
		return DNS_PARSE_NOTIMP;
	enum dns_parse parse = read_body(packet, &h, out);
	if (parse == DNS_PARSE_FORMERR)
		forget_question(out);
	return parse;
}

enum dns_rcode dns_parse_rcode(enum dns_parse parse)
{
	switch (parse) {
	case DNS_PARSE_OK:
		return DNS_RCODE_NOERROR;
	case DNS_PARSE_NOTIMP:
		return DNS_RCODE_NOTIMP;
	case DNS_PARSE_BADVERS:
		return DNS_RCODE_BADVERS;
	case DNS_PARSE_DROP:
	case DNS_PARSE_FORMERR:
		break;
	}
	return DNS_RCODE_FORMERR;
}

bool dns_response_parse(struct slice packet, struct dns_response *out)
{
	if (packet.len < DNS_HEADER)
		return false;
	struct header h = read_header(packet.ptr);
	if (!(h.flags & DNS_BIT_QR) || h.flags & DNS_BITS_OPCODE || h.questions != 1 || h.answers > LIMIT_DNS_RECORDS)
		return false;
	out->id = h.id;
	out->rcode = h.flags & DNS_BITS_RCODE;
	out->is_truncated = h.flags & DNS_BIT_TC;
	out->packet = packet;
	out->at = DNS_HEADER;
	out->answers = h.answers;
	out->authority = h.authority;
	return read_question(packet, &out->at, &out->q);
}

/* Everything of a record but the target. */
static bool read_record(struct slice packet, size_t *at, struct dns_rr *out)
{
	if (!dns_name_read(packet, at, &out->owner) || packet.len - *at < 10)
		return false;
	const char *p = packet.ptr + *at;
	out->type = octets_get16(p);
	out->class = octets_get16(p + 2);
	out->ttl = octets_get32(p + 4);
	if (out->ttl > INT32_MAX)
		out->ttl = 0;
	size_t len = octets_get16(p + 8);
	*at += 10;
	if (packet.len - *at < len)
		return false;
	out->rdata = slice_of(packet.ptr + *at, len);
	*at += len;
	return true;
}

/* The name that begins `skip` bytes into the data and ends with them. */
static bool read_rdata_name(struct slice packet, struct slice rdata, size_t skip, struct dns_name *out)
{
	size_t at = (size_t)(rdata.ptr - packet.ptr), end = at + rdata.len;
	if (rdata.len <= skip)
		return false;
	at += skip;
	return dns_name_read(slice_head(packet, end), &at, out) && at == end;
}

enum dns_next dns_response_next(struct dns_response *r, struct dns_rr *out)
{
	size_t at = r->at;
	out->target.len = 0;
	out->target.is_plain = false;
	if (r->answers == 0)
		return DNS_NEXT_END;
	if (!read_record(r->packet, &at, out))
		return DNS_NEXT_MALFORMED;
	if (out->type == DNS_TYPE_CNAME && !read_rdata_name(r->packet, out->rdata, 0, &out->target))
		return DNS_NEXT_MALFORMED;
	r->at = at;
	r->answers--;
	return DNS_NEXT_RECORD;
}

/* Two names and five numbers, of which the last counts. */
static bool soa_minimum(struct slice packet, struct slice rdata, uint32_t *minimum)
{
	struct dns_name name;
	size_t at = (size_t)(rdata.ptr - packet.ptr), end = at + rdata.len;
	struct slice bounded = slice_head(packet, end);
	if (!dns_name_read(bounded, &at, &name) || !dns_name_read(bounded, &at, &name) || end - at != 20)
		return false;
	*minimum = octets_get32(packet.ptr + at + 16);
	return true;
}

bool dns_response_negative_ttl(const struct dns_response *r, uint32_t *ttl)
{
	struct dns_rr rr;
	size_t at = r->at, left = r->authority < LIMIT_DNS_RECORDS ? r->authority : LIMIT_DNS_RECORDS;
	if (r->answers > 0)
		return false;
	while (left-- > 0 && read_record(r->packet, &at, &rr)) {
		uint32_t minimum;
		if (rr.type != DNS_TYPE_SOA)
			continue;
		if (!soa_minimum(r->packet, rr.rdata, &minimum))
			return false;
		*ttl = minimum < rr.ttl ? minimum : rr.ttl;
		return true;
	}
	return false;
}

/* Where the names are in the data of a record; the rest is copied as it is. */
struct names_within {
	size_t before; /* bytes */
	unsigned count;
	size_t after; /* bytes */
};

/* Order and preference, then three strings. */
static bool naptr_skip(struct slice rdata, size_t *before)
{
	size_t at = 4;
	for (int i = 0; i < 3; i++) {
		if (at >= rdata.len)
			return false;
		at += 1 + (size_t)(uint8_t)rdata.ptr[at];
	}
	*before = at;
	return at < rdata.len;
}

static bool find_names(const struct dns_rr *rr, struct names_within *out)
{
	*out = (struct names_within){.count = 1};
	switch (rr->type) {
	case DNS_TYPE_NS:
	case DNS_TYPE_CNAME:
	case DNS_TYPE_PTR:
		return true;
	case DNS_TYPE_MX:
		out->before = 2;
		return true;
	case DNS_TYPE_SRV:
		out->before = 6;
		return true;
	case DNS_TYPE_NAPTR:
		return naptr_skip(rr->rdata, &out->before);
	case DNS_TYPE_SOA:
		*out = (struct names_within){.count = 2, .after = 20};
		return true;
	default:
		*out = (struct names_within){.before = rr->rdata.len};
		return true;
	}
}

/* Reads the name at *at of the packet and writes it in full. */
static bool expand_name(struct slice packet, size_t *at, char *buf, size_t cap, size_t *len)
{
	struct dns_name name;
	if (!dns_name_read(packet, at, &name) || (name.len > 0 && !name.is_plain))
		return false;
	size_t n = dns_name_write(&name, buf + *len, cap - *len);
	*len += n;
	return n > 0;
}

bool dns_rdata_expand(const struct dns_response *r, const struct dns_rr *rr, char *buf, size_t cap, struct slice *out)
{
	struct names_within names;
	size_t at = (size_t)(rr->rdata.ptr - r->packet.ptr), end = at + rr->rdata.len;
	struct slice bounded = slice_head(r->packet, end);
	if (!find_names(rr, &names) || rr->rdata.len < names.before || cap < names.before)
		return false;
	memcpy(buf, rr->rdata.ptr, names.before);
	size_t len = names.before;
	at += names.before;
	for (unsigned i = 0; i < names.count; i++)
		if (!expand_name(bounded, &at, buf, cap, &len))
			return false;
	if (end - at != names.after || cap - len < names.after)
		return false;
	memcpy(buf + len, r->packet.ptr + at, names.after);
	*out = slice_of(buf, len + names.after);
	return true;
}
