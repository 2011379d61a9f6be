/* Placeholders in the fields of a request: as they are, and in the credentials of "Authorization: Basic". */
#include <limits.h>
#include <openssl/evp.h>

#include "proxy/inject_private.h"

/* ---- which ---- */

/* Fields that are not sent on, or written by us, are no slots. */
static bool can_be_slot(const struct field *f)
{
	return !field_is_hop_by_hop(f->id) && f->id != FIELD_HOST && f->id != FIELD_CONTENT_LENGTH &&
	       f->id != FIELD_EXPECT;
}

static bool has_slot(const struct policy_secret *s, struct slice name)
{
	for (size_t i = 0; i < s->n_headers; i++)
		if (s->headers[i].len == name.len && slice_ieq(s->headers[i], name))
			return true;
	return false;
}

/* Some servers take "x_api_key" for "x-api-key": where a placeholder is required, nothing else goes there in that spelling. */
static bool has_slot_in_spelling(const struct policy_secret *s, struct slice name)
{
	for (size_t i = 0; i < s->n_headers; i++) {
		if (s->headers[i].len != name.len)
			continue;
		size_t at = 0;
		while (at < name.len &&
		       (ascii_lower((unsigned char)name.ptr[at]) == (unsigned char)s->headers[i].ptr[at] ||
			(name.ptr[at] == '_' && s->headers[i].ptr[at] == '-')))
			at++;
		if (at == name.len)
			return true;
	}
	return false;
}

static uint64_t secrets_for(const struct rewrite *r, const struct field *f)
{
	uint64_t which = 0;
	if (!can_be_slot(f))
		return 0;
	for (uint64_t left = r->active; left > 0;) {
		unsigned i = take_bit(&left);
		if (has_slot(r->secrets[i].secret, f->name))
			which |= bit_of(i);
	}
	return which;
}

static void check_spelling(struct rewrite *r, const struct field *f)
{
	for (uint64_t left = r->active; left > 0;) {
		unsigned i = take_bit(&left);
		const struct policy_secret *s = r->secrets[i].secret;
		if (s->require && !has_slot(s, f->name) && has_slot_in_spelling(s, f->name))
			rewrite_saw(r, SLOT_HEADER, f->name, bit_of(i), 0);
	}
}

/* ---- a value ---- */

/* *text is left alone when nothing is found in it. */
static enum cage_status replace(const struct rewrite *r, const struct words *w, struct slice *text, uint64_t *found)
{
	struct made made = {0};
	*found = made_put_replaced(&made, w, *text, r->raw);
	if (*found == 0)
		return CAGE_OK;
	made = (struct made){.ptr = arena_alloc(r->arena, made.len)};
	if (!made.ptr)
		return CAGE_ENOMEM;
	made_put_replaced(&made, w, *text, r->raw);
	*text = slice_of(made.ptr, made.len);
	return CAGE_OK;
}

/* ---- Basic ---- */

static bool cut_basic(struct slice value, struct slice *scheme, struct slice *token)
{
	size_t at = slice_find(value, ' ');
	if (!slice_ieq(slice_head(value, at), SLICE("basic")))
		return false;
	while (at < value.len && value.ptr[at] == ' ')
		at++;
	*scheme = slice_head(value, at);
	*token = slice_from(value, at);
	return token->len > 0;
}

/* The digits without '=' at their end, which may be left out, but not in part. */
static bool cut_padding(struct slice *token)
{
	size_t all = token->len;
	while (token->len > 0 && token->ptr[token->len - 1] == '=')
		token->len--;
	return token->len % 4 != 1 && (token->len == all || (all % 4 == 0 && all - token->len < 3));
}

/* Strictly: what is decoded here has one way only to be read. out has room for 3 bytes of each 4 digits. */
static bool decode_base64(struct slice digits, char *out, size_t *len)
{
	unsigned bits = 0, n_bits = 0;
	size_t n = 0;
	for (size_t i = 0; i < digits.len; i++) {
		int digit = ascii_base64((unsigned char)digits.ptr[i]);
		if (digit < 0 || digits.ptr[i] == '-' || digits.ptr[i] == '_')
			return false;
		bits = (bits << 6 | (unsigned)digit) & 0xfff;
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		out[n++] = (char)(bits >> n_bits);
	}
	*len = n;
	return (bits & ((1u << n_bits) - 1)) == 0;
}

static enum cage_status encode_basic(struct arena *arena, struct slice scheme, struct slice plain, struct slice *out)
{
	if (plain.len > INT_MAX / 2)
		return CAGE_ELIMIT;
	size_t digits = (plain.len + 2) / 3 * 4;
	char *ptr = arena_alloc(arena, scheme.len + digits + 1); /* it ends with a NUL */
	if (!ptr)
		return CAGE_ENOMEM;
	memcpy(ptr, scheme.ptr, scheme.len);
	EVP_EncodeBlock((unsigned char *)ptr + scheme.len, (const unsigned char *)plain.ptr, (int)plain.len);
	*out = slice_of(ptr, scheme.len + digits);
	return CAGE_OK;
}

/* *found is 0 and *value left alone when it is no such field, malformed, or has none in it. */
static enum cage_status replace_basic(const struct rewrite *r, const struct words *w, struct slice *value,
				      uint64_t *found)
{
	struct slice scheme, token;
	*found = 0;
	if (!cut_basic(*value, &scheme, &token) || !cut_padding(&token))
		return CAGE_OK;
	char *ptr = arena_alloc(r->arena, token.len);
	if (!ptr)
		return CAGE_ENOMEM;
	size_t len;
	if (!decode_base64(token, ptr, &len))
		return CAGE_OK;
	struct slice plain = slice_of(ptr, len);
	enum cage_status st = replace(r, w, &plain, found);
	if (st != CAGE_OK || *found == 0)
		return st;
	return encode_basic(r->arena, scheme, plain, value);
}

/* ---- all fields ---- */

static enum cage_status rewrite_value(struct rewrite *r, const struct field *f, uint64_t which, struct slice *value,
				      uint64_t *found)
{
	struct words words;
	words_init(&words, r->secrets, which, WORD_RAW);
	*found = 0;
	if (f->id == FIELD_AUTHORIZATION) {
		enum cage_status st = replace_basic(r, &words, value, found);
		if (st != CAGE_OK || *found > 0)
			return st;
	}
	return replace(r, &words, value, found);
}

static struct field *copy_fields(struct arena *arena, const struct message *head)
{
	struct field *copy = arena_array(arena, head->n_fields, sizeof(*copy));
	if (copy)
		memcpy(copy, head->fields, head->n_fields * sizeof(*copy));
	return copy;
}

/* "{{X}}", "Bearer {{X}}" */
static bool is_alone(struct slice value, struct slice placeholder)
{
	size_t at = slice_find(value, ' ');
	if (at < value.len)
		value = slice_trim(slice_from(value, at));
	return slice_eq(value, placeholder);
}

/* "user:{{X}}", "{{X}}:": one of both. */
static bool is_login(struct slice plain, struct slice placeholder)
{
	struct slice password = plain;
	struct slice user = slice_cut(&password, ':');
	return slice_eq(user, placeholder) || slice_eq(password, placeholder);
}

/* Of those that were found, a bit for each that is all that the field says. */
static uint64_t held_alone(const struct rewrite *r, const struct field *f, uint64_t found)
{
	char plain[LIMIT_PLACEHOLDER * 8];
	struct slice scheme, token;
	size_t len = 0;
	uint64_t alone = 0;
	bool is_basic = f->id == FIELD_AUTHORIZATION && cut_basic(f->value, &scheme, &token) && cut_padding(&token) &&
			token.len <= sizeof(plain) && decode_base64(token, plain, &len);
	for (uint64_t left = found; left > 0;) {
		unsigned i = take_bit(&left);
		struct slice placeholder = r->secrets[i].placeholder;
		if (is_alone(f->value, placeholder) || (is_basic && is_login(slice_of(plain, len), placeholder)))
			alone |= bit_of(i);
	}
	return alone;
}

enum cage_status rewrite_fields(struct rewrite *r, struct message *head)
{
	struct field *copy = NULL;
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct field *f = &head->fields[i];
		uint64_t which = secrets_for(r, f), found;
		struct slice value = f->value;
		check_spelling(r, f);
		if (which == 0)
			continue;
		enum cage_status st = rewrite_value(r, f, which, &value, &found);
		if (st != CAGE_OK)
			return st;
		rewrite_saw(r, SLOT_HEADER, f->name, which, found & held_alone(r, f, found));
		r->found |= found;
		if (found == 0)
			continue;
		if (!copy && !(copy = copy_fields(r->arena, head)))
			return CAGE_ENOMEM;
		copy[i].value = value;
	}
	if (copy)
		head->fields = copy;
	return CAGE_OK;
}
