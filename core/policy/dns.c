/* The section `dns`: what cage-dns answers where the rules alone don't say it. The limits of labels, names and their
 * randomness are those of the inspector `name`, for names that are asked for and for hosts of requests alike. */
#include "core/policy/load.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))
#define SECOND_US 1000000u

/* Types that can be listed, none of which asks for a whole zone or for anything at all. What their records say is not looked
 * at: TXT can hold anything, and SRV, MX, NAPTR and URI name other hosts, which count for nothing until they are asked for. */
static const struct {
	struct slice name;
	uint16_t type;
} listable[] = {
	{WORD("CNAME"), 5}, {WORD("NS"), 2},    {WORD("SOA"), 6},    {WORD("PTR"), 12},    {WORD("MX"), 15},
	{WORD("TXT"), 16},  {WORD("SRV"), 33},  {WORD("NAPTR"), 35}, {WORD("DS"), 43},     {WORD("SSHFP"), 44},
	{WORD("TLSA"), 52}, {WORD("CAA"), 257}, {WORD("URI"), 256},  {WORD("DNSKEY"), 48},
};

_Static_assert(N(listable) <= LIMIT_DNS_TYPES, "a policy may list all of them");

/* What else a policy might name, and why it can't. */
static const struct {
	struct slice name;
	const char *why;
} unlistable[] = {
	{WORD("A"), "is always answered"},
	{WORD("AAAA"), "is always answered"},
	{WORD("ANY"), "can't be listed: it asks for everything at once"},
	{WORD("NULL"), "can't be listed: it carries any bytes"},
	{WORD("AXFR"), "can't be listed: it copies a whole zone"},
	{WORD("IXFR"), "can't be listed: it copies a whole zone"},
	{WORD("HTTPS"), "can't be listed: it is always answered without a record, since it could lead past the proxy"},
	{WORD("SVCB"), "can't be listed: it is always answered without a record, since it could lead past the proxy"},
};

static void read_denied(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {
		[DNS_SINKHOLE] = WORD("sinkhole"),
		[DNS_NXDOMAIN] = WORD("nxdomain"),
		[DNS_REFUSED] = WORD("refused"),
	};
	struct policy_dns *dns = out;
	size_t i;
	if (choice_read(l, value, words, N(words), &i))
		dns->denied = (enum dns_denied)i;
}

static void read_aliases(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {
		[DNS_ALIASES_ALLOWED] = WORD("allowed"),
		[DNS_ALIASES_ANY] = WORD("any"),
	};
	struct policy_dns *dns = out;
	size_t i;
	if (choice_read(l, value, words, N(words), &i))
		dns->aliases = (enum dns_aliases)i;
}

/* ---- sinkhole ---- */

static bool sinkhole_address(struct loader *l, const struct node *item, struct addr *out)
{
	if (item->kind != NODE_TEXT || !addr_parse(item->text, out)) {
		node_error(l->errs, item, "expected an address, got %s", node_describe(item).text);
		return false;
	}
	if (addr_classify(out) != ADDR_METADATA)
		return true;
	node_error(l->errs, item, "%s is a cloud metadata address; nobody may be sent there", quote(item->text).text);
	return false;
}

static void read_sinkhole(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	dns->n_sinkhole = 0;
	if (!list_check(l, value, "addresses"))
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		struct addr a;
		if (!sinkhole_address(l, item, &a))
			continue;
		if (policy_sinkhole(dns, a.family))
			node_error(l->errs, item, "expected one IPv4 and one IPv6 address at most, got another %s",
				   quote(item->text).text);
		else
			dns->sinkhole[dns->n_sinkhole++] = a;
	}
}

const struct addr *policy_sinkhole(const struct policy_dns *dns, enum addr_family family)
{
	for (size_t i = 0; i < dns->n_sinkhole; i++)
		if (dns->sinkhole[i].family == family)
			return &dns->sinkhole[i];
	return NULL;
}

/* ---- types ---- */

static void unknown_type(struct loader *l, const struct node *item)
{
	struct near near = {.text = item->text};
	for (size_t i = 0; i < N(listable); i++)
		near_try(&near, listable[i].name);
	node_error(l->errs, item, "expected a query type such as TXT, MX or SRV, got %s%s", node_describe(item).text,
		   near_hint(&near).text);
}

/* Its number; 0 with an error. */
static uint16_t type_read(struct loader *l, const struct node *item)
{
	for (size_t i = 0; item->kind == NODE_TEXT && i < N(listable); i++)
		if (slice_eq(item->text, listable[i].name))
			return listable[i].type;
	for (size_t i = 0; item->kind == NODE_TEXT && i < N(unlistable); i++) {
		if (slice_eq(item->text, unlistable[i].name)) {
			node_error(l->errs, item, "%s %s", quote(item->text).text, unlistable[i].why);
			return 0;
		}
	}
	unknown_type(l, item);
	return 0;
}

static void read_types(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	if (!list_check(l, value, "query types"))
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		uint16_t type = type_read(l, item);
		if (type == 0)
			continue;
		if (policy_lists_type(dns, type))
			node_error(l->errs, item, "%s is listed twice", quote(item->text).text);
		else
			dns->types[dns->n_types++] = type;
	}
}

bool policy_lists_type(const struct policy_dns *dns, uint16_t type)
{
	for (size_t i = 0; i < dns->n_types; i++)
		if (dns->types[i] == type)
			return true;
	return false;
}

/* ---- mode and pool ---- */

static void read_dns_mode(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {
		[DNS_RESOLVE] = WORD("resolve"),
		[DNS_SYNTHETIC] = WORD("synthetic"),
	};
	struct policy_dns *dns = out;
	size_t i;
	if (choice_read(l, value, words, N(words), &i))
		dns->mode = (enum dns_mode)i;
}

/* The last address of an IPv4 range. */
static struct addr range_last(const struct addr_range *r)
{
	struct addr last = r->base;
	for (unsigned bit = r->prefix; bit < 32; bit++)
		last.bytes[bit / 8] |= (unsigned char)(0x80u >> bit % 8);
	return last;
}

/* Addresses that somebody on the internet has must never stand for a name. */
static bool pool_is_private(const struct addr_range *r)
{
	struct addr last = range_last(r);
	return addr_classify(&r->base) != ADDR_PUBLIC && addr_classify(&last) != ADDR_PUBLIC;
}

static void read_pool(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	struct addr_range r;
	const char *why = "expected a range such as 100.64.0.0/10";
	if (value->kind != NODE_TEXT || !addr_range_parse(value->text, &r, &why))
		node_error(l->errs, value, "%s, got %s", why, node_describe(value).text);
	else if (r.base.family != ADDR_V4 || r.prefix < LIMIT_DNS_POOL_WIDEST || r.prefix > LIMIT_DNS_POOL_NARROWEST)
		node_error(l->errs, value, "expected an IPv4 range from /%d to /%d, got %s", LIMIT_DNS_POOL_WIDEST,
			   LIMIT_DNS_POOL_NARROWEST, node_describe(value).text);
	else if (!pool_is_private(&r))
		node_error(l->errs, value, "expected a range of private addresses, got %s", node_describe(value).text);
	else
		dns->pool = r;
}

/* ---- ttl ---- */

static void ttl_read(struct loader *l, const struct node *value, uint32_t *out)
{
	uint64_t us;
	if (duration_read(l, value, LIMIT_DNS_TTL_S, &us))
		*out = (uint32_t)(us / SECOND_US);
}

static void read_ttl_min(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	ttl_read(l, value, &dns->ttl_min);
}

static void read_ttl_max(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	ttl_read(l, value, &dns->ttl_max);
}

static void read_ttl_denied(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	ttl_read(l, value, &dns->ttl_denied);
}

static const struct key ttl_keys[] = {
	{WORD("min"), read_ttl_min, KEY_OPTIONAL},
	{WORD("max"), read_ttl_max, KEY_OPTIONAL},
	{WORD("denied"), read_ttl_denied, KEY_OPTIONAL},
};

static void read_ttl(struct loader *l, const struct node *value, void *out)
{
	const struct policy_dns *dns = out;
	section_read(l, value, ttl_keys, N(ttl_keys), out);
	if (dns->ttl_min > dns->ttl_max)
		node_error(l->errs, value, "min is more than max");
}

/* ---- tunnel ---- */

static void read_tunnel_rate(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	rate_read(l, value, &dns->tunnel_rate);
}

static void read_tunnel_bytes(struct loader *l, const struct node *value, void *out)
{
	struct policy_dns *dns = out;
	size_rate_read(l, value, LIMIT_DNS_NAME_BYTES, &dns->tunnel_bytes);
}

static const struct key tunnel_keys[] = {
	{WORD("rate"), read_tunnel_rate, KEY_OPTIONAL},
	{WORD("bytes"), read_tunnel_bytes, KEY_OPTIONAL},
};

static void read_tunnel(struct loader *l, const struct node *value, void *out)
{
	section_read(l, value, tunnel_keys, N(tunnel_keys), out);
}

/* ---- the whole ---- */

static const struct key dns_keys[] = {
	{WORD("denied"), read_denied, KEY_OPTIONAL}, {WORD("sinkhole"), read_sinkhole, KEY_OPTIONAL},
	{WORD("types"), read_types, KEY_OPTIONAL},   {WORD("mode"), read_dns_mode, KEY_OPTIONAL},
	{WORD("pool"), read_pool, KEY_OPTIONAL},     {WORD("ttl"), read_ttl, KEY_OPTIONAL},
	{WORD("tunnel"), read_tunnel, KEY_OPTIONAL}, {WORD("aliases"), read_aliases, KEY_OPTIONAL},
};

void dns_defaults(struct policy_dns *dns)
{
	*dns = (struct policy_dns){
		.denied = DNS_SINKHOLE,
		.aliases = DNS_ALIASES_ALLOWED,
		.n_sinkhole = 2,
		.mode = DNS_RESOLVE,
		.pool = {.base = {ADDR_V4, {100, 64}}, .prefix = 10},
		.ttl_min = 1,
		.ttl_max = 3600,
		.ttl_denied = 10,
		.tunnel_rate = {300, 60 * (uint64_t)SECOND_US},
		.tunnel_bytes = {KIB(64), 3600 * (uint64_t)SECOND_US},
	};
	dns->sinkhole[0] = (struct addr){ADDR_V4, {192, 0, 2, 1}};
	dns->sinkhole[1] = (struct addr){ADDR_V6, {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
}

/* A key that would do nothing is a misunderstanding. */
static void check_together(struct loader *l, const struct node *map, const struct policy_dns *dns)
{
	const struct node *sinkhole = node_get(map, SLICE("sinkhole"));
	const struct node *pool = node_get(map, SLICE("pool"));
	const struct node *types = node_get(map, SLICE("types"));
	if (sinkhole && dns->denied != DNS_SINKHOLE)
		node_key_error(l->errs, sinkhole, "needs denied: sinkhole");
	if (pool && dns->mode != DNS_SYNTHETIC)
		node_key_error(l->errs, pool, "needs mode: synthetic");
	if (types && dns->mode == DNS_SYNTHETIC)
		node_key_error(l->errs, types, "with mode: synthetic nobody is asked, so only addresses are answered");
	const struct addr *v4 = policy_sinkhole(dns, ADDR_V4);
	if (dns->mode == DNS_SYNTHETIC && v4 && addr_range_contains(&dns->pool, v4))
		node_error(l->errs, map, "the sinkhole can't lie in the pool");
}

void dns_read(struct loader *l, const struct node *map)
{
	struct policy_dns *dns = &l->policy->dns;
	if (section_read(l, map, dns_keys, N(dns_keys), dns))
		check_together(l, map, dns);
}
