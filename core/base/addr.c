/* Addresses as values. Two tables say what is special; a third says how an IPv6 address can carry an IPv4 one, so that
 * a forbidden address stays forbidden in every wrapping. Text goes through inet_pton and inet_ntop, behind a check of
 * the bytes: they take no octal, hex or short forms. */
#include "core/base/addr.h"

#include "core/base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* Reachable by somebody inside, or by nobody: names are searched only for the former where a match may be chance. */
enum special_kind { NOT_SPECIAL, SPECIAL_INSIDE, SPECIAL_OTHER };

struct special {
	unsigned char base[16];
	unsigned prefix;
	enum special_kind kind;
};

static const struct special special_v4[] = {
	{{0}, 8, SPECIAL_OTHER},             /* "this network"; Linux connects 0.0.0.0 to itself */
	{{10}, 8, SPECIAL_INSIDE},           /* RFC 1918 */
	{{100, 64}, 10, SPECIAL_INSIDE},     /* shared space of carriers (CGNAT) */
	{{127}, 8, SPECIAL_INSIDE},          /* loopback */
	{{169, 254}, 16, SPECIAL_INSIDE},    /* link-local */
	{{172, 16}, 12, SPECIAL_INSIDE},     /* RFC 1918 */
	{{192, 0, 0}, 24, SPECIAL_OTHER},    /* IETF protocol assignments */
	{{192, 0, 2}, 24, SPECIAL_OTHER},    /* documentation; also the DNS sinkhole */
	{{192, 88, 99}, 24, SPECIAL_OTHER},  /* 6to4 relays, deprecated */
	{{192, 168}, 16, SPECIAL_INSIDE},    /* RFC 1918 */
	{{198, 18}, 15, SPECIAL_OTHER},      /* benchmarks */
	{{198, 51, 100}, 24, SPECIAL_OTHER}, /* documentation */
	{{203, 0, 113}, 24, SPECIAL_OTHER},  /* documentation */
	{{224}, 4, SPECIAL_OTHER},           /* multicast */
	{{240}, 4, SPECIAL_OTHER},           /* reserved, and broadcast */
};

/* Everything outside 2000::/3 is special as well: unspecified (::), discard (100::/64), segment routing (5f00::/16),
 * multicast (ff00::/8) and what is not assigned. */
static const struct special special_v6[] = {
	{{[15] = 1}, 128, SPECIAL_INSIDE},             /* loopback */
	{{0xfc}, 7, SPECIAL_INSIDE},                   /* unique local */
	{{0xfe, 0x80}, 10, SPECIAL_INSIDE},            /* link-local */
	{{0xfe, 0xc0}, 10, SPECIAL_INSIDE},            /* site-local, deprecated */
	{{0x20, 0x01}, 23, SPECIAL_OTHER},             /* IETF protocol assignments, with Teredo 2001::/32 */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, SPECIAL_OTHER}, /* documentation */
	{{0x20, 0x02}, 16, SPECIAL_OTHER},             /* 6to4 */
	{{0x3f, 0xff}, 20, SPECIAL_OTHER},             /* documentation */
};

static const struct addr_range global_v6 = {{ADDR_V6, {0x20}}, 3};
static const struct addr_range nat64 = {{ADDR_V6, {0x00, 0x64, 0xff, 0x9b}}, 96};

static const struct addr metadata[] = {
	{ADDR_V4, {169, 254, 169, 254}},                        /* AWS, Azure, GCP, Oracle and most others */
	{ADDR_V4, {169, 254, 170, 2}},                          /* AWS ECS task credentials */
	{ADDR_V4, {169, 254, 170, 23}},                         /* AWS EKS pod identity */
	{ADDR_V4, {100, 100, 100, 200}},                        /* Alibaba */
	{ADDR_V4, {168, 63, 129, 16}},                          /* Azure host agent */
	{ADDR_V6, {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}}, /* AWS */
	{ADDR_V6, {0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23}},       /* AWS EKS pod identity */
	{ADDR_V6, {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}}, /* GCP */
};

/* Where an IPv6 address of that prefix carries an IPv4 one. */
struct embedding {
	unsigned char base[16];
	unsigned prefix;
	unsigned char at[4]; /* index of each IPv4 byte */
	unsigned char flip;  /* each is stored XORed with this */
};

static const struct embedding embeddings[] = {
	{{[10] = 0xff, 0xff}, 96, {12, 13, 14, 15}, 0},           /* mapped */
	{{0}, 96, {12, 13, 14, 15}, 0},                           /* compatible */
	{{[8] = 0xff, 0xff}, 96, {12, 13, 14, 15}, 0},            /* translated, RFC 2765 */
	{{0x00, 0x64, 0xff, 0x9b}, 96, {12, 13, 14, 15}, 0},      /* NAT64 */
	{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48, {6, 7, 9, 10}, 0},   /* NAT64 of local use, by RFC 6052 under a /48, ... */
	{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48, {7, 9, 10, 11}, 0},  /* ... /56, ... */
	{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48, {9, 10, 11, 12}, 0}, /* ... /64 ... */
	{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48, {12, 13, 14, 15}, 0}, /* ... and /96 */
	{{0x20, 0x02}, 16, {2, 3, 4, 5}, 0},                       /* 6to4 */
	{{0x20, 0x01}, 32, {4, 5, 6, 7}, 0},                       /* Teredo: the server */
	{{0x20, 0x01}, 32, {12, 13, 14, 15}, 0xff},                /* Teredo: the client */
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static unsigned family_bits(enum addr_family f)
{
	return f == ADDR_V4 ? 32 : 128;
}

/* The bits of byte i that belong to the prefix. */
static unsigned char prefix_mask(unsigned prefix, unsigned i)
{
	if (prefix >= 8 * (i + 1))
		return 0xff;
	if (prefix <= 8 * i)
		return 0;
	return (unsigned char)(0xff << (8 - (prefix - 8 * i)));
}

static bool same_prefix(const unsigned char a[16], const unsigned char b[16], unsigned prefix)
{
	for (unsigned i = 0; i < 16; i++)
		if ((a[i] ^ b[i]) & prefix_mask(prefix, i))
			return false;
	return true;
}

/* text as a C string for inet_pton; false when it has bytes or a length that no address has. */
static bool copy_address_text(struct slice text, char out[ADDR_TEXT])
{
	if (text.len == 0 || text.len >= ADDR_TEXT)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (ascii_hex((unsigned char)c) < 0 && c != ':' && c != '.')
			return false;
	}
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
	return true;
}

bool addr_parse(struct slice text, struct addr *out)
{
	char buf[ADDR_TEXT];
	struct addr a = {0};
	if (!copy_address_text(text, buf))
		return false;
	a.family = slice_find(text, ':') < text.len ? ADDR_V6 : ADDR_V4;
	if (inet_pton(a.family == ADDR_V4 ? AF_INET : AF_INET6, buf, a.bytes) != 1)
		return false;
	*out = a;
	return true;
}

/* By hand, since it stands in every log line and inet_ntop goes through printf. */
static struct slice format_v4(const unsigned char bytes[4], char out[ADDR_TEXT])
{
	struct text t = text_in(out, ADDR_TEXT - 1);
	for (size_t i = 0; i < 4; i++) {
		if (i > 0)
			text_put_char(&t, '.');
		text_put_u64(&t, bytes[i]);
	}
	out[t.len] = '\0';
	return text_slice(&t);
}

struct slice addr_format(const struct addr *a, char out[ADDR_TEXT])
{
	if (a->family == ADDR_V4)
		return format_v4(a->bytes, out);
	if (!inet_ntop(AF_INET6, a->bytes, out, ADDR_TEXT))
		out[0] = '\0';
	return slice_str(out);
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Decimal as we would write it: no leading zero. */
static bool parse_plain_number(struct slice text, uint64_t max, uint64_t *out)
{
	return slice_to_u64(text, max, out) && (text.ptr[0] != '0' || text.len == 1);
}

bool addr_range_parse(struct slice text, struct addr_range *out, const char **why)
{
	size_t slash = slice_find(text, '/');
	struct addr_range r = {0};
	if (!addr_parse(slice_head(text, slash), &r.base)) {
		*why = "not a canonical IPv4 or IPv6 address";
		return false;
	}
	uint64_t prefix = family_bits(r.base.family);
	if (slash < text.len && !parse_plain_number(slice_from(text, slash + 1), prefix, &prefix)) {
		*why = "the prefix length must be a number up to 32 (IPv4) or 128 (IPv6)";
		return false;
	}
	r.prefix = (unsigned)prefix;
	for (unsigned i = 0; i < 16; i++)
		if (r.base.bytes[i] & ~prefix_mask(r.prefix, i)) {
			*why = "bits are set behind the prefix length";
			return false;
		}
	*out = r;
	return true;
}

bool addr_range_contains(const struct addr_range *r, const struct addr *a)
{
	return r->base.family == a->family && same_prefix(r->base.bytes, a->bytes, r->prefix);
}

/* Does an address in r exist that carries v4 in this way? Bits between prefix and v4 may be anything. */
static bool range_embeds(const struct addr_range *r, const struct embedding *e, const struct addr *v4)
{
	unsigned both = r->prefix < e->prefix ? r->prefix : e->prefix;
	if (!same_prefix(r->base.bytes, e->base, both))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		unsigned at = e->at[i];
		if ((r->base.bytes[at] ^ v4->bytes[i] ^ e->flip) & prefix_mask(r->prefix, at))
			return false;
	}
	return true;
}

bool addr_range_has_metadata(const struct addr_range *r)
{
	for (size_t m = 0; m < COUNT(metadata); m++) {
		if (addr_range_contains(r, &metadata[m]))
			return true;
		if (r->base.family == ADDR_V4 || metadata[m].family == ADDR_V6)
			continue;
		for (size_t e = 0; e < COUNT(embeddings); e++)
			if (range_embeds(r, &embeddings[e], &metadata[m]))
				return true;
	}
	return false;
}

static bool is_metadata(const struct addr *a)
{
	struct addr_range only = {*a, family_bits(a->family)};
	return addr_range_has_metadata(&only);
}

static enum special_kind special_kind_of(const struct addr *a)
{
	const struct special *table = a->family == ADDR_V4 ? special_v4 : special_v6;
	size_t n = a->family == ADDR_V4 ? COUNT(special_v4) : COUNT(special_v6);
	for (size_t i = 0; i < n; i++)
		if (same_prefix(table[i].base, a->bytes, table[i].prefix))
			return table[i].kind;
	if (a->family == ADDR_V6 && !addr_range_contains(&global_v6, a))
		return SPECIAL_OTHER;
	return NOT_SPECIAL;
}

static struct addr embedded_v4(const struct embedding *e, const struct addr *a)
{
	struct addr v4 = {ADDR_V4, {0}};
	for (unsigned i = 0; i < 4; i++)
		v4.bytes[i] = a->bytes[e->at[i]] ^ e->flip;
	return v4;
}

enum addr_class addr_classify(const struct addr *a)
{
	if (is_metadata(a))
		return ADDR_METADATA;
	struct addr reached = *a;
	if (addr_range_contains(&nat64, a)) {
		reached = (struct addr){ADDR_V4, {0}};
		memcpy(reached.bytes, a->bytes + 12, 4);
	}
	return special_kind_of(&reached) == NOT_SPECIAL ? ADDR_PUBLIC : ADDR_SPECIAL;
}

socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (a->family == ADDR_V4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->bytes, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->bytes, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *out, uint16_t *port)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
		*out = (struct addr){ADDR_V4, {0}};
		memcpy(out->bytes, &in->sin_addr, sizeof(in->sin_addr));
		*port = ntohs(in->sin_port);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
		*out = (struct addr){ADDR_V6, {0}};
		memcpy(out->bytes, &in6->sin6_addr, sizeof(in6->sin6_addr));
		*port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

bool addr_parse_with_port(struct slice text, struct addr *out, uint16_t *port)
{
	size_t colon = slice_rfind(text, ':');
	struct slice host = slice_head(text, colon);
	enum addr_family family = ADDR_V4;
	if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
		host = slice_of(host.ptr + 1, host.len - 2);
		family = ADDR_V6;
	}
	struct addr a;
	uint64_t number;
	if (!parse_plain_number(slice_from(text, colon + 1), UINT16_MAX, &number) || !addr_parse(host, &a))
		return false;
	if (a.family != family)
		return false;
	*out = a;
	*port = (uint16_t)number;
	return true;
}

/* Metadata, or something a neighbour listens on. Unlike "not public", rare enough that a label which happens to be
 * eight hex digits, or a number, hardly ever meets it. */
static bool is_inside(const struct addr *a)
{
	if (is_metadata(a) || special_kind_of(a) == SPECIAL_INSIDE)
		return true;
	if (a->family == ADDR_V4)
		return false;
	for (size_t i = 0; i < COUNT(embeddings); i++) {
		struct addr v4 = embedded_v4(&embeddings[i], a);
		if (same_prefix(embeddings[i].base, a->bytes, embeddings[i].prefix) &&
		    special_kind_of(&v4) == SPECIAL_INSIDE)
			return true;
	}
	return false;
}

static struct addr addr_of_u32(uint32_t v)
{
	return (struct addr){
		ADDR_V4,
		{(unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8), (unsigned char)v}};
}

static bool label_is_decimal_inside(struct slice label)
{
	uint64_t v;
	if (!slice_to_u64(label, UINT32_MAX, &v))
		return false;
	struct addr a = addr_of_u32((uint32_t)v);
	return is_inside(&a);
}

static bool label_is_hex_inside(struct slice label)
{
	uint32_t v = 0;
	if (label.len != 8)
		return false;
	for (size_t i = 0; i < label.len; i++) {
		int digit = ascii_hex((unsigned char)label.ptr[i]);
		if (digit < 0)
			return false;
		v = v << 4 | (uint32_t)digit;
	}
	struct addr a = addr_of_u32(v);
	return is_inside(&a);
}

static bool label_is_dashed_v6_inside(struct slice label)
{
	char text[ADDR_TEXT];
	struct addr a;
	if (label.len >= sizeof(text))
		return false;
	for (size_t i = 0; i < label.len; i++)
		text[i] = label.ptr[i] == '-' ? ':' : label.ptr[i];
	return addr_parse(slice_of(text, label.len), &a) && a.family == ADDR_V6 && is_inside(&a);
}

static bool some_label_is_inside(struct slice name)
{
	while (name.len > 0) {
		struct slice label = slice_cut(&name, '.');
		if (label_is_decimal_inside(label) || label_is_hex_inside(label) || label_is_dashed_v6_inside(label))
			return true;
	}
	return false;
}

/* Four numbers in a row with the same separator, dots or dashes. In a longer row each four count: services that answer
 * such names do not agree on which four they take. */
struct quad {
	unsigned count; /* octets so far with the same separator between them */
	char separator;
	uint32_t value; /* the last four */
};

static bool quad_add(struct quad *q, char separator, struct slice token)
{
	uint64_t octet;
	if (token.len > 3 || !slice_to_u64(token, 255, &octet)) {
		q->count = 0;
		return false;
	}
	if (q->count > 1 && separator != q->separator)
		q->count = 1;
	q->count++;
	q->separator = separator;
	q->value = q->value << 8 | (uint32_t)octet;
	struct addr a = addr_of_u32(q->value);
	return q->count >= 4 && addr_classify(&a) != ADDR_PUBLIC;
}

static bool has_special_quad(struct slice name)
{
	struct quad q = {0};
	char separator = '.';
	size_t start = 0;
	for (size_t i = 0; i <= name.len; i++) {
		if (i < name.len && name.ptr[i] != '.' && name.ptr[i] != '-')
			continue;
		if (quad_add(&q, separator, slice_of(name.ptr + start, i - start)))
			return true;
		separator = i < name.len ? name.ptr[i] : '.';
		start = i + 1;
	}
	return false;
}

bool addr_spelled_in_name(struct slice name)
{
	return name.len > 0 && (has_special_quad(name) || some_label_is_inside(name));
}

bool addr_is_loopback(const struct addr *a)
{
	static const unsigned char one[16] = {[15] = 1};
	return a->family == ADDR_V4 ? a->bytes[0] == 127 : memcmp(a->bytes, one, sizeof(one)) == 0;
}
