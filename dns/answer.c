/* A response is read twice or more: until no alias leads on, and then for the records of the last name. So the order of its
 * records does not matter, and whatever does not belong to the question is never met. */
#include "dns/answer.h"

#include <stddef.h>

static bool has_room(const struct dns_answer *a, size_t n)
{
	return LIMIT_DNS_ANSWER - a->len >= n;
}

static void put(struct dns_answer *a, const void *bytes, size_t n)
{
	memcpy(a->data + a->len, bytes, n);
	a->len = (uint16_t)(a->len + n);
}

static bool put_alias(struct dns_answer *a, const struct dns_name *name)
{
	if (!has_room(a, 1 + (size_t)name->len))
		return false;
	put(a, &name->len, 1);
	put(a, name->text, name->len);
	a->n_aliases++;
	return true;
}

static bool put_record(struct dns_answer *a, struct slice data)
{
	const unsigned char len[2] = {(unsigned char)(data.len >> 8), (unsigned char)data.len};
	if (a->n_records == UINT8_MAX || !has_room(a, sizeof(len) + data.len))
		return false;
	put(a, len, sizeof(len));
	if (data.len > 0)
		put(a, data.ptr, data.len);
	a->n_records++;
	return true;
}

/* The alias at *at; moves *at behind it. */
static struct slice alias_at(const struct dns_answer *a, size_t *at)
{
	struct slice name = slice_of(a->data + *at + 1, (unsigned char)a->data[*at]);
	*at += 1 + name.len;
	return name;
}

static struct slice record_at(const struct dns_answer *a, size_t *at)
{
	const unsigned char *p = (const unsigned char *)a->data + *at;
	struct slice data = slice_of(p + 2, (size_t)(p[0] << 8 | p[1]));
	*at += 2 + data.len;
	return data;
}

static size_t records_begin(const struct dns_answer *a)
{
	size_t at = 0;
	for (size_t i = 0; i < a->n_aliases; i++)
		alias_at(a, &at);
	return at;
}

/* ---- reading ---- */

struct reading {
	const struct dns_response *response;
	const struct dns_answer_rules *rules;
	const struct dns_name *asked;
	struct dns_name at; /* where the aliases have led so far */
	uint32_t ttl;       /* the shortest of what is used */
	struct dns_answer *out;
};

static void use_ttl(struct reading *r, uint32_t ttl)
{
	if (ttl < r->ttl)
		r->ttl = ttl;
}

static bool was_met(const struct reading *r, const struct dns_name *name)
{
	size_t at = 0;
	if (dns_name_eq(r->asked, name))
		return true;
	for (size_t i = 0; i < r->out->n_aliases; i++)
		if (slice_eq(alias_at(r->out, &at), dns_name_text(name)))
			return true;
	return false;
}

static enum reason follow(struct reading *r, const struct dns_rr *alias)
{
	if (!alias->target.is_plain || r->out->n_aliases >= LIMIT_DNS_ALIASES || was_met(r, &alias->target))
		return REASON_UPSTREAM_MALFORMED;
	if (r->rules->check(r->rules->arg, &alias->target) != REASON_NONE)
		return REASON_ALIAS_NOT_ALLOWED;
	if (!put_alias(r->out, &alias->target))
		return REASON_UPSTREAM_MALFORMED;
	use_ttl(r, alias->ttl);
	r->at = alias->target;
	return REASON_NONE;
}

static bool is_of(const struct reading *r, const struct dns_rr *rr, uint16_t type)
{
	return rr->type == type && rr->class == DNS_CLASS_IN && dns_name_eq(&rr->owner, &r->at);
}

/* Once through the records. A client that asks for the alias itself gets the first one only. */
static enum reason follow_aliases(struct reading *r)
{
	struct dns_response copy = *r->response;
	struct dns_rr rr;
	enum dns_next next;
	while ((next = dns_response_next(&copy, &rr)) == DNS_NEXT_RECORD) {
		if (!is_of(r, &rr, DNS_TYPE_CNAME))
			continue;
		enum reason why = follow(r, &rr);
		if (why != REASON_NONE || r->out->type == DNS_TYPE_CNAME)
			return why;
	}
	return next == DNS_NEXT_END ? REASON_NONE : REASON_UPSTREAM_MALFORMED;
}

static enum reason read_aliases(struct reading *r)
{
	size_t before;
	do {
		before = r->out->n_aliases;
		enum reason why = follow_aliases(r);
		if (why != REASON_NONE)
			return why;
	} while (r->out->n_aliases > before && r->out->type != DNS_TYPE_CNAME);
	return REASON_NONE;
}

static size_t address_size(uint16_t type)
{
	if (type == DNS_TYPE_A)
		return 4;
	return type == DNS_TYPE_AAAA ? 16 : 0;
}

struct address_list {
	struct addr addrs[LIMIT_ANSWERS];
	size_t n;
};

/* Addresses beyond the bound are neither looked at nor handed on. */
static bool take_address(struct address_list *list, struct slice data, size_t size)
{
	if (data.len != size)
		return false;
	if (list->n == LIMIT_ANSWERS)
		return true;
	struct addr *a = &list->addrs[list->n++];
	*a = (struct addr){.family = size == 4 ? ADDR_V4 : ADDR_V6};
	memcpy(a->bytes, data.ptr, size);
	return true;
}

static enum reason put_addresses(struct reading *r, struct address_list *list)
{
	enum reason why;
	size_t n = vet_addresses(&r->rules->vet, 0, list->addrs, list->n, &why);
	for (size_t i = 0; i < n; i++)
		if (!put_record(r->out, slice_of(list->addrs[i].bytes, address_size(r->out->type))))
			return REASON_UPSTREAM_MALFORMED;
	return why;
}

static bool take_record(struct reading *r, const struct dns_rr *rr, struct address_list *list)
{
	char expanded[LIMIT_DNS_ANSWER];
	struct slice data;
	use_ttl(r, rr->ttl);
	if (address_size(r->out->type) > 0)
		return take_address(list, rr->rdata, address_size(r->out->type));
	return dns_rdata_expand(r->response, rr, expanded, sizeof(expanded), &data) && put_record(r->out, data);
}

/* Without an SOA nobody says how long, and it is not for long. */
static uint32_t negative_ttl(const struct dns_response *r)
{
	uint32_t ttl;
	return dns_response_negative_ttl(r, &ttl) ? ttl : 0;
}

static enum reason read_records(struct reading *r)
{
	struct dns_response copy = *r->response;
	struct address_list list = {.n = 0};
	struct dns_rr rr;
	enum dns_next next;
	while ((next = dns_response_next(&copy, &rr)) == DNS_NEXT_RECORD)
		if (is_of(r, &rr, r->out->type) && !take_record(r, &rr, &list))
			return REASON_UPSTREAM_MALFORMED;
	if (next != DNS_NEXT_END)
		return REASON_UPSTREAM_MALFORMED;
	if (list.n > 0)
		return put_addresses(r, &list);
	if (r->out->n_records == 0)
		use_ttl(r, negative_ttl(&copy));
	return REASON_NONE;
}

/* An alias that was itself asked for is what there is. */
static bool is_negative(const struct dns_answer *a)
{
	return a->n_records == 0 && !(a->type == DNS_TYPE_CNAME && a->n_aliases > 0);
}

static uint32_t clamp_ttl(const struct reading *r)
{
	uint32_t max = r->rules->ttl_max;
	if (is_negative(r->out) && max > LIMIT_DNS_NEGATIVE_S)
		max = LIMIT_DNS_NEGATIVE_S;
	uint32_t ttl = r->ttl < max ? r->ttl : max;
	return ttl > r->rules->ttl_min ? ttl : r->rules->ttl_min;
}

static enum reason response_fault(const struct dns_response *r, const struct dns_name *name, uint16_t type)
{
	if (!dns_name_eq(&r->q.name, name) || r->q.type != type || r->q.class != DNS_CLASS_IN)
		return REASON_UPSTREAM_MALFORMED;
	if (r->is_truncated)
		return REASON_UPSTREAM_TRUNCATED;
	bool is_answer = r->rcode == DNS_RCODE_NOERROR || r->rcode == DNS_RCODE_NXDOMAIN;
	return is_answer ? REASON_NONE : REASON_UPSTREAM_UNREACHABLE; /* c-ares says no more of it either */
}

enum reason dns_answer_read(struct slice packet, const struct dns_name *name, uint16_t type,
			    const struct dns_answer_rules *rules, union dns_answer_room *out)
{
	struct dns_response response;
	if (!dns_response_parse(packet, &response))
		return REASON_UPSTREAM_MALFORMED;
	enum reason why = response_fault(&response, name, type);
	if (why != REASON_NONE)
		return why;
	out->answer = (struct dns_answer){.type = type, .rcode = response.rcode};
	struct reading r = {
		.response = &response,
		.rules = rules,
		.asked = name,
		.at = *name,
		.ttl = UINT32_MAX,
		.out = &out->answer,
	};
	why = read_aliases(&r);
	if (why == REASON_NONE && is_negative(&out->answer))
		why = read_records(&r);
	if (why != REASON_NONE)
		return why;
	if (response.rcode == DNS_RCODE_NXDOMAIN && out->answer.n_records > 0)
		return REASON_UPSTREAM_MALFORMED;
	out->answer.ttl = clamp_ttl(&r);
	return REASON_NONE;
}

/* ---- using ---- */

bool dns_answer_address(const struct dns_answer *a, size_t number, struct addr *out)
{
	size_t size = address_size(a->type), at = records_begin(a);
	if (size == 0 || number >= a->n_records)
		return false;
	*out = (struct addr){.family = size == 4 ? ADDR_V4 : ADDR_V6};
	memcpy(out->bytes, a->data + at + number * (2 + size) + 2, size);
	return true;
}

static void name_of(struct dns_name *name, struct slice text)
{
	name->len = (uint8_t)text.len;
	name->is_plain = true;
	memcpy(name->text, text.ptr, text.len);
}

void dns_answer_write(const struct dns_answer *a, uint32_t ttl, struct dns_writer *w)
{
	struct dns_name names[2];
	const struct dns_name *owner = &w->query->q.name;
	size_t at = 0;
	dns_write_rcode(w, (enum dns_rcode)a->rcode);
	for (size_t i = 0; i < a->n_aliases; i++) {
		struct dns_name *target = &names[i % 2];
		name_of(target, alias_at(a, &at));
		dns_write_cname(w, owner, ttl, target);
		owner = target;
	}
	for (size_t i = 0; i < a->n_records; i++)
		dns_write_raw(w, owner, a->type, ttl, record_at(a, &at));
}
