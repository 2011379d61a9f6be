/* The frames of bindings. Reading takes nothing on trust: every length must fit the others, and a name be one. */
#include "core/net/binding.h"

#define HEAD 9 /* bytes of a frame before the name */

static size_t address_size(enum binding_kind kind)
{
	return kind == BINDING_V6 ? 16 : 4;
}

static bool is_name_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-' || c == '_' || c == '.';
}

static bool is_good(const struct binding *b)
{
	bool is_kind = b->kind == BINDING_V4 || b->kind == BINDING_V6 || b->kind == BINDING_GIVEN;
	size_t most = b->kind == BINDING_GIVEN ? 1 : LIMIT_ANSWERS;
	if (!is_kind || b->n == 0 || b->n > most || b->name.len == 0 || b->name.len > LIMIT_HOST)
		return false;
	for (size_t i = 0; i < b->name.len; i++)
		if (!is_name_byte((unsigned char)b->name.ptr[i]))
			return false;
	return b->life_s > 0 && b->life_s <= LIMIT_BINDING_LIFE_S;
}

static bool is_family_good(const struct binding *b)
{
	enum addr_family family = b->kind == BINDING_V6 ? ADDR_V6 : ADDR_V4;
	for (size_t i = 0; i < b->n; i++)
		if (b->addrs[i].family != family)
			return false;
	return true;
}

size_t binding_write(const struct binding *b, unsigned char out[BINDING_FRAME])
{
	if (!is_good(b) || !is_family_good(b))
		return 0;
	size_t size = address_size(b->kind), len = HEAD + b->name.len + b->n * size;
	out[0] = (unsigned char)((len - 2) >> 8);
	out[1] = (unsigned char)(len - 2);
	out[2] = (unsigned char)b->kind;
	out[3] = (unsigned char)b->n;
	for (unsigned i = 0; i < 4; i++)
		out[4 + i] = (unsigned char)(b->life_s >> (24 - 8 * i));
	out[8] = (unsigned char)b->name.len;
	memcpy(out + HEAD, b->name.ptr, b->name.len);
	for (size_t i = 0; i < b->n; i++)
		memcpy(out + HEAD + b->name.len + i * size, b->addrs[i].bytes, size);
	return len;
}

static void read_addresses(struct binding *b, const char *at)
{
	size_t size = address_size(b->kind);
	for (size_t i = 0; i < b->n; i++) {
		b->addrs[i] = (struct addr){.family = size == 16 ? ADDR_V6 : ADDR_V4};
		memcpy(b->addrs[i].bytes, at + i * size, size);
	}
}

enum cage_status binding_read(struct slice *input, struct binding *out)
{
	const unsigned char *p = (const unsigned char *)input->ptr;
	if (input->len < 2)
		return CAGE_AGAIN;
	size_t len = 2 + ((size_t)p[0] << 8 | p[1]);
	if (len < HEAD || len > BINDING_FRAME)
		return CAGE_EPROTO;
	if (input->len < len)
		return CAGE_AGAIN;
	*out = (struct binding){.kind = (enum binding_kind)p[2], .n = p[3]};
	for (unsigned i = 0; i < 4; i++)
		out->life_s = out->life_s << 8 | p[4 + i];
	out->name = slice_of(input->ptr + HEAD, p[8]);
	if (HEAD + out->name.len > len || !is_good(out) ||
	    len != HEAD + out->name.len + out->n * address_size(out->kind))
		return CAGE_EPROTO;
	read_addresses(out, input->ptr + HEAD + out->name.len);
	*input = slice_from(*input, len);
	return CAGE_OK;
}
