/* Placeholders in a text, however its form lets them be written. One pass, with nothing decoded into a buffer, so that
 * every byte around a placeholder can stay as it is; and a text may come in pieces. */
#include "proxy/inject_private.h"

#define WARY_PERCENT 2 /* digits of %XX */
#define WARY_JSON 4    /* digits of \uXXXX, and more than any other escape has that some reader may know */

void words_init(struct words *w, const struct inject_secret *secrets, uint64_t which, enum word_form form)
{
	*w = (struct words){.secrets = secrets, .which = which, .form = form};
	w->stops['%'] = w->stops['\\'] = true;
	for (uint64_t left = which; left > 0;) {
		unsigned i = take_bit(&left);
		if (secrets[i].placeholder.len == 0) {
			w->which &= ~bit_of(i);
			continue;
		}
		w->stops[(unsigned char)secrets[i].placeholder.ptr[0]] = true;
	}
}

/* ---- one byte of a placeholder: how many bytes of the text stand for it ---- */

static enum word_answer digits_match(struct slice text, size_t from, size_t n, unsigned value, size_t *len)
{
	for (size_t i = 0; i < n; i++) {
		if (from + i >= text.len)
			return WORD_PARTIAL;
		unsigned digit = value >> (4 * (n - 1 - i)) & 15;
		if (ascii_hex((unsigned char)text.ptr[from + i]) != (int)digit)
			return WORD_NONE;
	}
	*len = from + n;
	return WORD_FOUND;
}

static enum word_answer json_escape_match(struct slice text, char byte, size_t *len)
{
	if (text.len == 1)
		return WORD_PARTIAL;
	if (text.ptr[1] == 'u')
		return digits_match(text, 2, 4, (unsigned char)byte, len);
	*len = 2;
	return text.ptr[1] == '/' && byte == '/' ? WORD_FOUND : WORD_NONE; /* other letters stand for no byte of one */
}

/* The text is not empty. */
static enum word_answer byte_match(enum word_form form, struct slice text, char byte, size_t *len)
{
	if (form == WORD_PERCENT && text.ptr[0] == '%')
		return digits_match(text, 1, 2, (unsigned char)byte, len);
	if (form == WORD_JSON && text.ptr[0] == '\\')
		return json_escape_match(text, byte, len);
	*len = 1;
	return text.ptr[0] == byte ? WORD_FOUND : WORD_NONE;
}

/* ---- one placeholder, at the start of a text ---- */

static enum word_answer raw_match(struct slice text, struct slice word, size_t *len)
{
	struct slice begin = slice_head(text, word.len);
	if (!slice_eq(begin, slice_head(word, begin.len)))
		return WORD_NONE;
	*len = word.len;
	return begin.len == word.len ? WORD_FOUND : WORD_PARTIAL;
}

static enum word_answer escaped_match(enum word_form form, struct slice text, struct slice word, size_t *len)
{
	size_t at = 0;
	for (size_t i = 0; i < word.len; i++) {
		size_t n = 0;
		if (at == text.len)
			return WORD_PARTIAL;
		enum word_answer a = byte_match(form, slice_from(text, at), word.ptr[i], &n);
		if (a != WORD_FOUND)
			return a;
		at += n;
	}
	*len = at;
	return WORD_FOUND;
}

/* ---- all of them ---- */

/* What has matched at one place so far. */
struct best {
	bool is_open; /* some may match when more comes */
	bool is_found;
	struct word_match match;
};

static void consider(struct best *b, enum word_answer a, unsigned secret, size_t len)
{
	if (a == WORD_PARTIAL)
		b->is_open = true;
	if (a != WORD_FOUND || (b->is_found && len <= b->match.end))
		return;
	b->is_found = true;
	b->match = (struct word_match){.secret = secret, .end = len};
}

static enum word_answer match_here(const struct words *w, struct slice text, bool is_end, struct word_match *m)
{
	struct best best = {0};
	for (uint64_t left = w->which; left > 0;) {
		unsigned i = take_bit(&left);
		struct slice word = w->secrets[i].placeholder;
		size_t len = 0;
		enum word_answer a = raw_match(text, word, &len);
		consider(&best, a, i, len);
		if (w->form == WORD_RAW || a == WORD_FOUND)
			continue;
		a = escaped_match(w->form, text, word, &len);
		consider(&best, a, i, len);
	}
	*m = best.match;
	if (best.is_open && !is_end)
		return WORD_PARTIAL;
	return best.is_found ? WORD_FOUND : WORD_NONE;
}

static void pass_json(struct word_place *p, char c)
{
	static const struct slice whole = WORD("\"\\/bfnrt");
	if (p->is_escaped) {
		p->is_escaped = false;
		p->wary = slice_find(whole, c) < whole.len ? 0 : WARY_JSON;
	} else if (c == '\\') {
		p->is_escaped = true;
		p->wary = 0;
	} else if (p->wary > 0) {
		p->wary = ascii_hex((unsigned char)c) >= 0 ? p->wary - 1 : 0;
	}
}

/* A byte with which no placeholder begins. Whatever the form, somebody behind us may undo escapes of both kinds, and a value that is
 * part of one would come back as something else. */
static void pass(struct word_place *p, char c)
{
	pass_json(p, c);
	if (c == '%' && p->wary < WARY_PERCENT)
		p->wary = WARY_PERCENT;
}

enum word_answer words_find(const struct words *w, struct slice text, size_t from, bool is_end,
			    struct word_place *place, struct word_match *m)
{
	for (size_t i = from; i < text.len; i++) {
		if (!place->is_escaped && place->wary == 0) {
			while (i < text.len && !w->stops[(unsigned char)text.ptr[i]])
				i++;
			if (i == text.len)
				break;
			enum word_answer a = match_here(w, slice_from(text, i), is_end, m);
			m->start = i;
			m->end += i;
			if (a != WORD_NONE)
				return a;
		}
		pass(place, text.ptr[i]);
	}
	return WORD_NONE;
}
