/* The text is decoded, a layer after the other, rather than the values encoded: who writes JSON or addresses may escape more than he has to.
 * Base64 has one spelling for what lies within three bytes, and so can be looked for, wherever it begins; it is decoded as well, from the
 * beginning of a run of digits, for what is written in another form inside of it. */
#include "orchestrator/azure/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/limits.h"
#include "core/base/wipe.h"

/* ---- keeping ---- */

/* The digits of its bytes from one whole group of three to another, if `skip` of them come before the first. */
static void add_digits(struct hidden *h, struct slice value, size_t skip)
{
	struct slice whole = slice_from(value, skip);
	whole.len -= whole.len % 3;
	const size_t n = BASE64_DIGITS(whole.len);
	char *digits = malloc(n + 1);
	if (digits) {
		base64_write(whole, digits);
		digits[n] = '\0';
		words_add(&h->digits, "%s", digits);
	}
	h->digits.failed = h->digits.failed || !digits;
	wipe_free(digits);
}

static void add_all_digits(struct hidden *h, struct slice bytes)
{
	for (size_t skip = 0; skip < 3 && bytes.len >= LIMIT_DEPLOY_SECURE_LEAST; skip++)
		add_digits(h, bytes, skip);
}

/* It has no NUL. */
static void add_text(struct hidden *h, struct slice text)
{
	char *copy = text.len >= LIMIT_DEPLOY_SECURE_LEAST ? strndup(text.ptr, text.len) : NULL;
	if (copy && !words_has(&h->values, copy)) {
		words_add(&h->values, "%s", copy);
		add_all_digits(h, text);
	}
	h->values.failed = h->values.failed || (!copy && text.len >= LIMIT_DEPLOY_SECURE_LEAST);
	wipe_free(copy);
}

static void add_lines(struct hidden *h, struct slice text)
{
	add_text(h, text);
	while (text.len > 0) {
		const struct slice line = slice_cut(&text, '\n');
		add_text(h, slice_head(line, line.len - slice_ends(line, SLICE("\r"))));
	}
}

/* What is shown is text, so of a value with NULs its parts can be there, or base64 of all of it. */
void hidden_add(struct hidden *h, struct slice value)
{
	if (slice_find(value, '\0') < value.len)
		add_all_digits(h, value);
	while (value.len > 0)
		add_lines(h, slice_cut(&value, '\0'));
}

void hidden_wipe(struct hidden *h)
{
	words_wipe(&h->values);
	words_wipe(&h->digits);
}

/* ---- JSON ---- */

/* The code unit of an escape with four hex digits, or 0: there is none, or it is NUL, which no value has. */
static unsigned unit_at(const char *at)
{
	unsigned unit = 0;
	if (at[0] != '\\' || at[1] != 'u')
		return 0;
	for (int i = 2; i < 6; i++) {
		const int digit = ascii_hex((unsigned char)at[i]);
		if (digit < 0)
			return 0;
		unit = unit << 4 | (unsigned)digit;
	}
	return unit;
}

/* UTF-8 of what is written there as one escape, or as two that are a pair; never longer than they are. */
static const char *take_unit(const char *at, char **out)
{
	const unsigned unit = unit_at(at), low = (unit & 0xfc00) == 0xd800 ? unit_at(at + 6) : 0;
	const bool is_pair = (low & 0xfc00) == 0xdc00;
	const unsigned letter = is_pair ? 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff) : unit;
	const unsigned more = letter < 0x80      ? 0
			      : letter < 0x800   ? 1
			      : letter < 0x10000 ? 2
						 : 3; /* bytes after the first */
	static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
	*(*out)++ = (char)(first[more] | letter >> (6 * more));
	for (unsigned i = more; i-- > 0;)
		*(*out)++ = (char)(0x80 | (letter >> (6 * i) & 0x3f));
	return at + (is_pair ? 12 : 6);
}

/* One layer of escapes less, in place. */
static void unescape(char *text)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	char *out = text;
	for (const char *at = text; *at;) {
		const char *letter = at[0] == '\\' && at[1] ? strchr(letters, at[1]) : NULL;
		if (unit_at(at) > 0) {
			at = take_unit(at, &out);
		} else if (at[0] == '\\' && at[1]) {
			*out++ = letter ? meant[letter - letters] : at[1];
			at += 2;
		} else {
			*out++ = *at++;
		}
	}
	*out = '\0';
}

/* ---- addresses and forms ---- */

/* The byte of "%XX", or 0: there is none, or it is NUL. */
static int byte_at(const char *at)
{
	const int high = at[0] == '%' ? ascii_hex((unsigned char)at[1]) : -1;
	const int low = high >= 0 ? ascii_hex((unsigned char)at[2]) : -1;
	return low >= 0 ? high << 4 | low : 0;
}

static void unquote(char *text)
{
	char *out = text;
	for (const char *at = text; *at;) {
		const int byte = byte_at(at);
		*out++ = byte ? (char)byte : *at;
		at += byte ? 3 : 1;
	}
	*out = '\0';
}

/* A form has '+' for a blank. */
static void unplus(char *text)
{
	for (; *text; text++)
		if (*text == '+')
			*text = ' ';
}

/* ---- base64 ---- */

/* In one alphabet, and without what breaks it into lines. */
static void one_alphabet(char *text)
{
	char *out = text;
	for (; *text; text++)
		if (!strchr(" \t\r\n", *text))
			*out++ = *text == '-' ? '+' : *text == '_' ? '/' : *text;
	*out = '\0';
}

/* How many digits stand there in a row. */
static size_t digits_at(const char *text)
{
	size_t n = 0;
	while (ascii_base64((unsigned char)text[n]) >= 0)
		n++;
	return n;
}

static bool is_run(size_t digits)
{
	return digits * 3 / 4 >= LIMIT_DEPLOY_SECURE_LEAST;
}

static bool has_run(const char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = digits_at(text);
		if (is_run(n))
			return true;
	}
	return false;
}

static char *take_run(const char *at, size_t n, char *out)
{
	uint32_t bits = 0;
	for (size_t i = 0; i < n; i++) {
		bits = bits << 6 | (uint32_t)ascii_base64((unsigned char)at[i]);
		const char byte = (char)(bits >> (6 - 2 * (i % 4)));
		if (i % 4 > 0)
			*out++ = byte ? byte : ' ';
	}
	return out;
}

/* Each run as the bytes that it stands for, in place: they are fewer. */
static void unbase64(char *text)
{
	char *out = text;
	for (const char *at = text; *at;) {
		const size_t n = digits_at(at), passed = n ? n : 1;
		if (is_run(n)) {
			out = take_run(at, n, out);
		} else {
			memmove(out, at, passed);
			out += passed;
		}
		at += passed;
	}
	*out = '\0';
}

/* ---- looking ---- */

struct look {
	const struct hidden *hidden;
	size_t left; /* bytes that may still be decoded */
};

static bool has_any(const struct words *w, const char *text)
{
	for (size_t i = 0; i < w->n; i++)
		if (strstr(text, w->list[i]))
			return true;
	return false;
}

static bool look_into(struct look *l, const char *text, unsigned layer);

/* NULL: no memory, or enough was looked at. */
static char *decoded(struct look *l, const char *text, void (*decode)(char *))
{
	const size_t n = strlen(text) + 1;
	char *copy = n <= l->left ? strdup(text) : NULL;
	if (copy) {
		l->left -= n;
		decode(copy);
	}
	return copy;
}

/* What can't be looked at is taken for one that holds something. */
static bool look_deeper(struct look *l, const char *text, unsigned layer, void (*decode)(char *))
{
	char *copy = decoded(l, text, decode);
	const bool is_in = !copy || (strcmp(copy, text) != 0 && look_into(l, copy, layer + 1));
	wipe_free(copy);
	return is_in;
}

static bool has_digits(struct look *l, const char *text)
{
	char *copy = decoded(l, text, one_alphabet);
	const bool is_in = !copy || has_any(&l->hidden->digits, copy);
	wipe_free(copy);
	return is_in;
}

static bool has_quoted(const char *text)
{
	for (; *text; text++)
		if (byte_at(text))
			return true;
	return false;
}

static bool look_into(struct look *l, const char *text, unsigned layer)
{
	if (has_any(&l->hidden->values, text) || has_digits(l, text))
		return true;
	if (layer == LIMIT_DEPLOY_NESTED) /* there may be more below */
		return strchr(text, '\\') || has_quoted(text) || has_run(text);
	return (strchr(text, '\\') && look_deeper(l, text, layer, unescape)) ||
	       (has_quoted(text) && look_deeper(l, text, layer, unquote)) ||
	       (strchr(text, '+') && look_deeper(l, text, layer, unplus)) ||
	       (has_run(text) && look_deeper(l, text, layer, unbase64));
}

bool hidden_is_in(const struct hidden *h, const char *text)
{
	struct look look = {.hidden = h, .left = LIMIT_AZURE_DECODED};
	if (hidden_has_failed(h))
		return true;
	return h->values.n > 0 && look_into(&look, text, 0);
}
