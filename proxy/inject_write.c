/* Writing what is put in, so that it can be nothing but a part of the text that it stands in. */
#include "core/base/escape.h"
#include "proxy/inject_private.h"

void made_put(struct made *m, struct slice s)
{
	if (m->ptr && s.len > 0)
		memcpy(m->ptr + m->len, s.ptr, s.len);
	m->len += s.len;
}

bool value_is_one_line(struct slice value)
{
	return slice_find(value, '\r') == value.len && slice_find(value, '\n') == value.len &&
	       slice_find(value, '\0') == value.len;
}

static void put_percent(struct made *m, unsigned char c)
{
	char escape[ESCAPE_PERCENT];
	made_put(m, slice_of(escape, escape_percent(c, escape)));
}

static void put_json(struct made *m, unsigned char c)
{
	char escape[ESCAPE_JSON];
	made_put(m, slice_of(escape, escape_json(c, escape)));
}

void made_put_escaped(struct made *m, struct slice s, enum word_form form)
{
	switch (form) {
	case WORD_RAW:
		made_put(m, s);
		return;
	case WORD_PERCENT:
		for (size_t i = 0; i < s.len; i++)
			put_percent(m, (unsigned char)s.ptr[i]);
		return;
	case WORD_JSON:
		for (size_t i = 0; i < s.len; i++)
			put_json(m, (unsigned char)s.ptr[i]);
		return;
	}
}

uint64_t made_put_replaced(struct made *m, const struct words *w, struct slice text, const struct slice *with)
{
	struct word_place place = {0};
	struct word_match match;
	uint64_t found = 0;
	size_t at = 0;
	while (words_find(w, text, at, true, &place, &match) == WORD_FOUND) {
		made_put(m, slice_from(slice_head(text, match.start), at));
		made_put(m, with[match.secret]);
		found |= bit_of(match.secret);
		at = match.end;
	}
	made_put(m, slice_from(text, at));
	return found;
}
