/* One pass over the pattern, which knows escapes, classes and groups. */
#include "inspectors/scan/expand.h"

#include "core/base/text.h"

#define GROWTH 16 /* bytes of output for each of the pattern, at most */

/* Bytes of the token at the front: an escape, a class, or one byte. */
static size_t token_length(struct slice s)
{
	if (s.ptr[0] == '\\' && s.len > 1)
		return 2;
	if (s.ptr[0] != '[')
		return 1;
	size_t i = 1;
	if (i < s.len && s.ptr[i] == '^')
		i++;
	if (i < s.len && s.ptr[i] == ']')
		i++;
	while (i < s.len && s.ptr[i] != ']')
		i += s.ptr[i] == '\\' ? 2 : 1;
	return i < s.len ? i + 1 : s.len;
}

/* Does it say itself which part is the value? */
static bool has_group(struct slice s)
{
	while (s.len > 0) {
		if (s.ptr[0] == '(' && s.len > 1 && s.ptr[1] != '?')
			return true;
		s = slice_from(s, token_length(s));
	}
	return false;
}

static void put_token(struct text *out, struct slice token)
{
	if (slice_eq(token, SLICE("\"")))
		text_put(out, SLICE("(?:\\\\{0,3}\")"));
	else if (slice_eq(token, SLICE("[\"']")))
		text_put(out, SLICE("(?:\\\\{0,3}[\"'])"));
	else if (slice_eq(token, SLICE("\\s")))
		text_put(out, SLICE("(?:\\s|\\\\{1,3}[nrt])"));
	else
		text_put(out, token);
}

static void put_rest(struct text *out, struct slice rest)
{
	while (rest.len > 0) {
		size_t n = token_length(rest);
		put_token(out, slice_head(rest, n));
		rest = slice_from(rest, n);
	}
}

struct slice pattern_expand(struct slice pattern, struct arena *arena)
{
	size_t room = pattern.len * GROWTH + 32;
	char *buf = arena_alloc(arena, room);
	struct text out = text_in(buf, room);
	if (!buf)
		return SLICE_NONE;
	if (!slice_starts(pattern, SLICE("\\b"))) {
		put_rest(&out, pattern);
		return text_slice(&out);
	}
	bool is_value = !has_group(pattern); /* without what stands before it */
	text_put(&out, is_value ? SLICE("(?:\\b|\\\\[nrt])(") : SLICE("(?:\\b|\\\\[nrt])"));
	put_rest(&out, slice_from(pattern, 2));
	if (is_value)
		text_put_char(&out, ')');
	return text_slice(&out);
}
