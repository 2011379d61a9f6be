/* Names: from the wire, with compression, to text and back. A pointer has to lead to before the labels that it ends, so
 * that no packet can make a loop; how many there may be is bounded as well. */
#include "dns/wire.h"

#include <stdio.h>

#include "dns/octets.h"

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-' || c == '_';
}

static bool can_be_shown(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '.';
}

static bool add_label(struct dns_name *out, struct slice label)
{
	size_t dot = out->len > 0;
	if (out->len + dot + label.len > LIMIT_HOST)
		return false;
	char *to = out->text + out->len;
	if (dot)
		*to++ = '.';
	for (size_t i = 0; i < label.len; i++) {
		unsigned char c = ascii_lower((unsigned char)label.ptr[i]);
		if (!is_plain(c)) {
			out->is_plain = false;
			c = can_be_shown(c) ? c : '?';
		}
		*to++ = (char)c;
	}
	out->len = (uint8_t)(out->len + dot + label.len);
	return true;
}

/* Where a name is read. */
struct place {
	size_t pos;
	size_t run;    /* where this run of labels began */
	size_t behind; /* the first pointer; 0: none was met */
	unsigned jumps;
};

static bool follow(struct slice packet, struct place *p)
{
	if (packet.len - p->pos < 2 || ++p->jumps > LIMIT_DNS_JUMPS)
		return false;
	size_t target = octets_get16(packet.ptr + p->pos) & 0x3fff;
	if (target < DNS_HEADER || target >= p->run)
		return false;
	if (p->behind == 0)
		p->behind = p->pos + 2;
	p->pos = p->run = target;
	return true;
}

bool dns_name_read(struct slice packet, size_t *at, struct dns_name *out)
{
	struct place p = {.pos = *at, .run = *at};
	out->len = 0;
	out->is_plain = true;
	for (;;) {
		if (p.pos >= packet.len)
			return false;
		uint8_t c = (uint8_t)packet.ptr[p.pos];
		if (c == 0)
			break;
		if (c >= 0xc0) {
			if (!follow(packet, &p))
				return false;
			continue;
		}
		if (c > LIMIT_LABEL || c >= packet.len - p.pos)
			return false;
		if (!add_label(out, slice_of(packet.ptr + p.pos + 1, c)))
			return false;
		p.pos += 1u + c;
	}
	*at = p.behind ? p.behind : p.pos + 1;
	out->is_plain = out->is_plain && out->len > 0;
	return true;
}

size_t dns_name_write(const struct dns_name *name, char *buf, size_t cap)
{
	struct slice rest = dns_name_text(name);
	size_t need = rest.len > 0 ? rest.len + 2 : 1, at = 0;
	if (cap < need)
		return 0;
	while (rest.len > 0) {
		struct slice label = slice_cut(&rest, '.');
		buf[at++] = (char)label.len;
		memcpy(buf + at, label.ptr, label.len);
		at += label.len;
	}
	buf[at] = 0;
	return need;
}

bool dns_name_set(struct dns_name *name, struct slice text)
{
	*name = (struct dns_name){.is_plain = true};
	if (text.len == 0 || text.ptr[text.len - 1] == '.')
		return false;
	while (text.len > 0) {
		struct slice label = slice_cut(&text, '.');
		if (label.len == 0 || label.len > LIMIT_LABEL || !add_label(name, label))
			return false;
	}
	return name->is_plain;
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

struct slice dns_name_text(const struct dns_name *name)
{
	return slice_of(name->text, name->len);
}

struct slice dns_type_text(uint16_t type, char buf[DNS_TYPE_TEXT])
{
	static const struct {
		uint16_t type;
		struct slice text;
	} types[] = {
		{DNS_TYPE_A, WORD("A")},         {DNS_TYPE_AAAA, WORD("AAAA")}, {DNS_TYPE_NS, WORD("NS")},
		{DNS_TYPE_CNAME, WORD("CNAME")}, {DNS_TYPE_SOA, WORD("SOA")},   {DNS_TYPE_NULL, WORD("NULL")},
		{DNS_TYPE_PTR, WORD("PTR")},     {DNS_TYPE_MX, WORD("MX")},     {DNS_TYPE_TXT, WORD("TXT")},
		{DNS_TYPE_SRV, WORD("SRV")},     {DNS_TYPE_OPT, WORD("OPT")},   {DNS_TYPE_SVCB, WORD("SVCB")},
		{DNS_TYPE_HTTPS, WORD("HTTPS")}, {DNS_TYPE_IXFR, WORD("IXFR")}, {DNS_TYPE_AXFR, WORD("AXFR")},
		{DNS_TYPE_ANY, WORD("ANY")},
	};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].text;
	return slice_of(buf, (size_t)snprintf(buf, DNS_TYPE_TEXT, "TYPE%u", type));
}
