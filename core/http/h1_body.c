/* Bodies as they arrive: slices of the input go out, nothing is copied but trailers. A chunk-size line has one strict
 * grammar; its extensions are checked and dropped, since nobody sends them on. */
#include "core/http/h1_private.h"

#include "core/base/limits.h"
#include "core/http/chars.h"

#define CHUNK_DIGITS 16 /* of a chunk size: as many as 64 bits hold */

/* What is left of the input of one call. */
struct feed {
	struct slice rest;
	struct arena *arena;
};

void h1_body_init(struct h1_body *b, const struct message *m)
{
	*b = (struct h1_body){.framing = m->framing};
	b->trailer_gate.kind = H1_GATE_TRAILERS;
	switch (m->framing) {
	case BODY_NONE:
		b->state = H1_BODY_END;
		break;
	case BODY_LENGTH:
		b->left = m->content_length;
		b->state = b->left ? H1_BODY_DATA : H1_BODY_END;
		break;
	case BODY_CLOSE:
		b->left = UINT64_MAX;
		b->state = H1_BODY_DATA;
		break;
	case BODY_CHUNKED:
		b->state = H1_BODY_CHUNK_SIZE;
		break;
	}
}

void h1_body_init_inner(struct h1_body *b, const struct message *m)
{
	h1_body_init(b, m);
	b->is_inner = m->framing == BODY_LENGTH;
	if (b->is_inner && b->left == 0)
		b->state = H1_BODY_TRAILERS;
}

/* All data of a chunk, or of a body without chunks, is there. */
static enum h1_body_state behind_data(const struct h1_body *b)
{
	if (b->state == H1_BODY_CHUNK_DATA)
		return H1_BODY_CHUNK_CR;
	return b->is_inner ? H1_BODY_TRAILERS : H1_BODY_END;
}

/* Takes as much data as there is. */
static struct slice take_data(struct h1_body *b, struct feed *f)
{
	size_t n = f->rest.len < b->left ? f->rest.len : (size_t)b->left;
	struct slice data = slice_head(f->rest, n);
	f->rest = slice_from(f->rest, n);
	if (b->framing != BODY_CLOSE)
		b->left -= n;
	if (b->left == 0)
		b->state = behind_data(b);
	return data;
}

static void chunk_begin(struct h1_body *b)
{
	b->state = H1_BODY_CHUNK_SIZE;
	b->left = 0;
	b->digits = 0;
	b->line_len = 0;
}

static enum cage_status chunk_size_byte(struct h1_body *b, char c)
{
	int digit = ascii_hex((unsigned char)c);
	if (digit >= 0) {
		if (b->digits == CHUNK_DIGITS)
			return CAGE_EPROTO;
		b->digits++;
		b->left = b->left << 4 | (unsigned)digit;
		return CAGE_OK;
	}
	if (b->digits == 0)
		return CAGE_EPROTO;
	if (c == '\r') {
		b->state = H1_BODY_CHUNK_SIZE_LF;
		return CAGE_OK;
	}
	if (c != ';')
		return CAGE_EPROTO;
	b->state = H1_BODY_CHUNK_EXT;
	b->ext = H1_EXT_NAME_START;
	return CAGE_OK;
}

/* The next ';' or the end of the line: both end an extension. */
static enum cage_status ext_end(struct h1_body *b, char c)
{
	if (c == '\r')
		b->state = H1_BODY_CHUNK_SIZE_LF;
	else if (c == ';')
		b->ext = H1_EXT_NAME_START;
	else
		return CAGE_EPROTO;
	return CAGE_OK;
}

/* An extension without a name ("2;") says nothing and is taken as none. */
static enum cage_status chunk_ext_byte(struct h1_body *b, char c)
{
	bool is_token = char_is(c, CHAR_TOKEN);
	switch (b->ext) {
	case H1_EXT_NAME_START:
	case H1_EXT_NAME:
		if (c == '=' && b->ext == H1_EXT_NAME)
			b->ext = H1_EXT_VALUE_START;
		else if (is_token)
			b->ext = H1_EXT_NAME;
		else
			return ext_end(b, c);
		return CAGE_OK;
	case H1_EXT_VALUE_START:
		if (c != '"' && !is_token)
			return CAGE_EPROTO;
		b->ext = is_token ? H1_EXT_VALUE : H1_EXT_QUOTED;
		return CAGE_OK;
	case H1_EXT_VALUE:
		return is_token ? CAGE_OK : ext_end(b, c);
	case H1_EXT_QUOTED:
		if (c == '"')
			b->ext = H1_EXT_QUOTED_END;
		else if (c == '\\')
			b->ext = H1_EXT_QUOTED_PAIR;
		return char_is(c, CHAR_VALUE) ? CAGE_OK : CAGE_EPROTO;
	case H1_EXT_QUOTED_PAIR:
		if (!char_is(c, CHAR_VALUE))
			return CAGE_EPROTO;
		b->ext = H1_EXT_QUOTED;
		return CAGE_OK;
	case H1_EXT_QUOTED_END:
		return ext_end(b, c);
	}
	return CAGE_EPROTO;
}

static enum cage_status chunk_line_byte(struct h1_body *b, char c)
{
	if (c != '\r' && ++b->line_len > LIMIT_CHUNK_LINE)
		return CAGE_ELIMIT;
	return b->state == H1_BODY_CHUNK_SIZE ? chunk_size_byte(b, c) : chunk_ext_byte(b, c);
}

/* One byte of what stands between the data of two chunks. */
static enum cage_status chunk_byte(struct h1_body *b, char c)
{
	switch (b->state) {
	case H1_BODY_CHUNK_SIZE:
	case H1_BODY_CHUNK_EXT:
		return chunk_line_byte(b, c);
	case H1_BODY_CHUNK_SIZE_LF:
		if (c != '\n')
			return CAGE_EPROTO;
		b->state = b->left ? H1_BODY_CHUNK_DATA : H1_BODY_TRAILERS;
		return CAGE_OK;
	case H1_BODY_CHUNK_CR:
		if (c != '\r')
			return CAGE_EPROTO;
		b->state = H1_BODY_CHUNK_LF;
		return CAGE_OK;
	case H1_BODY_CHUNK_LF:
		if (c != '\n')
			return CAGE_EPROTO;
		chunk_begin(b);
		return CAGE_OK;
	case H1_BODY_DATA:
	case H1_BODY_CHUNK_DATA:
	case H1_BODY_TRAILERS:
	case H1_BODY_END:
		return CAGE_EPROTO;
	}
	return CAGE_EPROTO;
}

static bool trailers_are_allowed(const struct h1_body *b)
{
	for (size_t i = 0; i < b->n_trailers; i++)
		if (field_is_hop_by_hop(b->trailers[i].id) || h1_is_protected(b->trailers[i].name))
			return false;
	return true;
}

/* Waits until the whole section is there, then takes it at once. */
static enum cage_status take_trailers(struct h1_body *b, struct feed *f)
{
	size_t len;
	struct h1_error err;
	enum cage_status st = h1_gate(&b->trailer_gate, f->rest, &len);
	if (st != CAGE_OK)
		return st;
	struct slice section = arena_dup(f->arena, slice_head(f->rest, len - 2));
	if (!section.ptr)
		return CAGE_ENOMEM;
	st = h1_parse_fields(section, f->arena, &b->trailers, &b->n_trailers, &err);
	if (st != CAGE_OK)
		return st;
	if (!trailers_are_allowed(b))
		return CAGE_EPROTO;
	f->rest = slice_from(f->rest, len);
	b->state = H1_BODY_END;
	return CAGE_OK;
}

/* Goes on until there is data, the end, no more input, or an error. */
static enum cage_status feed_run(struct h1_body *b, struct feed *f, struct slice *data)
{
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK && data->len == 0 && f->rest.len > 0 && b->state != H1_BODY_END) {
		if (b->state == H1_BODY_DATA || b->state == H1_BODY_CHUNK_DATA) {
			*data = take_data(b, f);
		} else if (b->state == H1_BODY_TRAILERS) {
			st = take_trailers(b, f);
		} else {
			st = chunk_byte(b, f->rest.ptr[0]);
			f->rest = slice_from(f->rest, st == CAGE_OK ? 1 : 0);
		}
	}
	return st;
}

enum cage_status h1_body_feed(struct h1_body *b, struct slice input, struct arena *arena, size_t *used,
			      struct slice *data)
{
	struct feed f = {input, arena};
	*data = SLICE_NONE;
	enum cage_status st = feed_run(b, &f, data);
	*used = input.len - f.rest.len;
	if (st != CAGE_OK)
		return st;
	if (b->state == H1_BODY_END)
		return CAGE_EOF;
	return f.rest.len == 0 ? CAGE_AGAIN : CAGE_OK;
}

enum cage_status h1_body_end_of_input(struct h1_body *b)
{
	if (b->framing == BODY_CLOSE)
		b->state = H1_BODY_END;
	return b->state == H1_BODY_END ? CAGE_EOF : CAGE_TRUNCATED;
}
