/* What the tests of inspectors/views share: a reader that keeps every text, text that is built up in memory, and encoders. */
#ifndef CAGE_TESTS_VIEWS_FIXTURE_H
#define CAGE_TESTS_VIEWS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "inspectors/views/views.h"
#include "tests/unit/bytes.h"

#define MARKER "SECRET-MARKER-0123456789"

/* ---- the reader ---- */

struct kept_text {
	struct view view;
	uint64_t offset;
	struct bytes content;
	bool is_over;
};

struct kept_run {
	enum view_kind kind;
	uint64_t offset, length;
};

/* Everything that was said about one text. */
struct kept {
	struct kept_text *texts[4096];
	size_t n_texts;
	struct kept_run runs[64];
	size_t n_runs;
};

static inline void *keep_begin(void *arg, const struct view *view, uint64_t offset)
{
	struct kept *k = arg;
	struct kept_text *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	assert_true(k->n_texts < sizeof(k->texts) / sizeof(k->texts[0]));
	t->view = *view;
	t->offset = offset;
	k->texts[k->n_texts++] = t;
	return t;
}

static inline enum cage_status keep_read(void *text, struct slice bytes)
{
	struct kept_text *t = text;
	assert_false(t->is_over);
	assert_true(bytes.len > 0);
	assert_true(t->view.depth == 0 || bytes.len <= 4096);
	bytes_add(&t->content, bytes);
	return CAGE_OK;
}

static inline enum cage_status keep_end(void *text)
{
	struct kept_text *t = text;
	assert_false(t->is_over);
	t->is_over = true;
	return CAGE_OK;
}

static inline void keep_run(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start)
{
	(void)start;
	struct kept *k = arg;
	if (k->n_runs < sizeof(k->runs) / sizeof(k->runs[0]))
		k->runs[k->n_runs++] = (struct kept_run){kind, offset, length};
}

static const struct view_reader keeper = {keep_begin, keep_read, keep_end, keep_run};

static inline void kept_clear(struct kept *k)
{
	for (size_t i = 0; i < k->n_texts; i++) {
		bytes_free(&k->texts[i]->content);
		free(k->texts[i]);
	}
	k->n_texts = 0;
	k->n_runs = 0;
}

/* Feeds the input cut at `cut`, or one byte at a time when cut is 0. Every text must be over at the end. */
static inline void keep_all(struct views *v, struct kept *k, struct slice input, size_t cut)
{
	kept_clear(k);
	views_reset(v);
	for (size_t at = 0; at < input.len;) {
		size_t n = cut == 0 ? 1 : at == 0 && cut < input.len ? cut : input.len - at;
		/* A copy, so that the sanitizer sees what is read beyond it. */
		char *piece = malloc(n);
		assert_non_null(piece);
		memcpy(piece, input.ptr + at, n);
		assert_int_equal(views_feed(v, slice_of(piece, n)), CAGE_OK);
		free(piece);
		at += n;
	}
	assert_int_equal(views_end(v), CAGE_OK);
	for (size_t i = 0; i < k->n_texts; i++)
		assert_true(k->texts[i]->is_over);
}

static inline bool is_view(const struct view *view, const enum view_kind *kinds, unsigned depth)
{
	if (view->depth != depth)
		return false;
	for (unsigned i = 0; i < depth; i++)
		if (view->kinds[i] != kinds[i])
			return false;
	return true;
}

/* Was wanted read in one piece in a text of that view? */
static inline bool kept_has(const struct kept *k, const enum view_kind *kinds, unsigned depth, struct slice wanted)
{
	for (size_t i = 0; i < k->n_texts; i++) {
		const struct bytes *content = &k->texts[i]->content;
		if (is_view(&k->texts[i]->view, kinds, depth) &&
		    memmem(content->ptr, content->len, wanted.ptr, wanted.len))
			return true;
	}
	return false;
}

/* ---- encoders: each appends to out ---- */

enum base64_style { STYLE_STANDARD, STYLE_URL, STYLE_UNPADDED, STYLES };

static inline void encode_base64(struct bytes *out, struct slice in, enum base64_style style)
{
	char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	if (style == STYLE_URL)
		memcpy(alphabet + 62, "-_", 2);
	for (size_t i = 0; i < in.len; i += 3) {
		size_t n = in.len - i < 3 ? in.len - i : 3;
		unsigned v = 0;
		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (k < n ? (unsigned char)in.ptr[i + k] : 0);
		for (size_t k = 0; k < 4; k++) {
			if (k <= n)
				bytes_add_char(out, alphabet[v >> (18 - 6 * k) & 63]);
			else if (style != STYLE_UNPADDED)
				bytes_add_char(out, '=');
		}
	}
}

/* Each byte with printf, and something between every two. */
static inline void encode_each(struct bytes *out, struct slice in, const char *format, const char *between)
{
	for (size_t i = 0; i < in.len; i++) {
		char text[16];
		snprintf(text, sizeof(text), format, (unsigned)(unsigned char)in.ptr[i]);
		bytes_add(out, i > 0 ? slice_str(between) : SLICE_NONE);
		bytes_add(out, slice_str(text));
	}
}

static inline void encode_utf16(struct bytes *out, struct slice in, bool is_big)
{
	for (size_t i = 0; i < in.len; i++) {
		char unit[2] = {is_big ? 0 : in.ptr[i], is_big ? in.ptr[i] : 0};
		bytes_add(out, slice_of(unit, 2));
	}
}

static inline void encode(struct bytes *out, struct slice in, enum view_kind kind)
{
	switch (kind) {
	case VIEW_BASE64:
		encode_base64(out, in, STYLE_STANDARD);
		return;
	case VIEW_HEX:
		encode_each(out, in, "%02x", "");
		return;
	case VIEW_PERCENT:
		encode_each(out, in, "%%%02X", "");
		return;
	case VIEW_JSON:
		encode_each(out, in, "\\u%04x", "");
		return;
	case VIEW_UTF16:
		encode_utf16(out, in, false);
		return;
	case VIEW_KINDS:
		break;
	}
	fail();
}

#endif
