/* See recode.h. */
#include "inspectors/known/recode.h"

#define RECODE_NEAR 256 /* how far before a value the alphabet is looked for */

static bool is_url_special(char c)
{
	return c == '-' || c == '_';
}

static bool is_common(char c)
{
	return ascii_is_digit((unsigned char)c) ||
	       (ascii_lower((unsigned char)c) >= 'a' && ascii_lower((unsigned char)c) <= 'z');
}

void recode_note(struct recode *c, struct slice bytes)
{
	size_t n = 0;
	while (n < bytes.len && n < RECODE_NEAR && is_common(bytes.ptr[bytes.len - 1 - n]))
		n++;
	bool is_seen = n < bytes.len && n < RECODE_NEAR;
	if (is_seen)
		c->is_url = is_url_special(bytes.ptr[bytes.len - 1 - n]);
	c->common = is_seen ? n : c->common + n;
	if (c->common >= RECODE_NEAR)
		c->is_url = false;
}

void recode_start(struct recode *c, unsigned place)
{
	c->bits = c->n_bits = 0;
	c->old_place = c->new_place = place;
}

static char next_digit(struct recode *c, unsigned value)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	c->new_place = (c->new_place + 1) % 4;
	if (value < 62)
		return digits[value];
	if (c->is_url)
		return value == 62 ? '-' : '_';
	return value == 62 ? '+' : '/';
}

size_t recode_bits(struct recode *c, unsigned bits, unsigned n, char out[RECODE_BYTE])
{
	size_t len = 0;
	c->bits = c->bits << n | (bits & ((1u << n) - 1));
	c->n_bits += n;
	while (c->n_bits >= 6) {
		c->n_bits -= 6;
		out[len++] = next_digit(c, c->bits >> c->n_bits & 63);
	}
	c->bits &= (1u << c->n_bits) - 1;
	return len;
}

size_t recode_digit(struct recode *c, char digit, unsigned used, char out[RECODE_BYTE])
{
	if (!is_common(digit)) {
		c->is_url = is_url_special(digit);
		c->common = 0;
	}
	c->old_place = (c->old_place + 1) % 4;
	return recode_bits(c, (unsigned)ascii_base64((unsigned char)digit), 6 - used, out);
}

size_t recode_end(struct recode *c, bool had_padding, char out[RECODE_END])
{
	static const unsigned spare_bits[4] = {0, 6, 4, 2}; /* behind the whole bytes, by digits in the last group */
	bool pads = had_padding || (c->old_place == 0 && !c->is_url);
	size_t len = 0;
	if (c->n_bits > spare_bits[c->old_place])
		out[len++] = next_digit(c, c->bits << (6 - c->n_bits) & 63);
	while (pads && c->new_place >= 2) {
		out[len++] = '=';
		c->new_place = (c->new_place + 1) % 4;
	}
	return len;
}
