/* Between values the text goes to the sink as it is, in slices of the piece; behind a value in base64 it goes through
 * the recoder up to the end of the run. What we write ourselves is collected in a small buffer. */
#include "inspectors/known/redact.h"

#include <stdlib.h>

#include "core/base/escape.h"
#include "core/base/limits.h"
#include "inspectors/known/held.h"
#include "inspectors/known/known_private.h"
#include "inspectors/known/recode.h"

#define REDACT_OUT 1024

enum redact_state {
	REDACT_PLAIN,
	REDACT_RUN,    /* in a run of base64 that is written afresh */
	REDACT_PADDING /* behind it: its old padding goes away */
};

struct redactor {
	const struct known_set *set;
	const struct slice *placeholders;
	redact_sink *sink;
	void *arg;
	enum redact_state state;
	struct recode recode;
	unsigned align;  /* of the first digit that is read next, when two values share it: see struct known_place */
	size_t old_pads; /* with REDACT_PADDING: the most that may still come */
	uint64_t found;
	bool keeps_length;
	size_t ahead;    /* with keeps_length: bytes of the text in front of us that are written already */
	bool is_changed; /* something was taken out, also of a secret that has no bit in found */
	struct held held;
	size_t n_out;
	char out[REDACT_OUT]; /* for the sink */
};

/* ---- out ---- */

static void flush(struct redactor *r)
{
	if (r->n_out > 0)
		r->sink(r->arg, slice_of(r->out, r->n_out));
	r->n_out = 0;
}

/* Where a few bytes of our own may go. */
static char *room_for(struct redactor *r, size_t n)
{
	if (n > REDACT_OUT - r->n_out)
		flush(r);
	return r->out + r->n_out;
}

static void put(struct redactor *r, const char *bytes, size_t n)
{
	memcpy(room_for(r, n), bytes, n);
	r->n_out += n;
}

static void put_byte_as_hex(struct redactor *r, unsigned char c, const char *digits)
{
	put(r, (const char[]){digits[c >> 4], digits[c & 15]}, 2);
}

/* ---- bytes that stay ---- */

static void end_run(struct redactor *r, bool had_padding)
{
	char *to = room_for(r, RECODE_END);
	r->n_out += recode_end(&r->recode, had_padding, to);
	r->state = REDACT_PLAIN;
}

/* Behind whole groups, or a single digit, '=' means something else. */
static bool is_padding(const struct redactor *r, char c)
{
	return c == '=' && r->recode.old_place >= 2;
}

/* The next digit of the run, or those of its bits that no value had. */
static void put_digit(struct redactor *r, char digit)
{
	char *to = room_for(r, RECODE_BYTE);
	r->n_out += recode_digit(&r->recode, digit, 2 * r->align, to);
	r->align = 0;
}

/* How many bytes belong to the run. */
static size_t pass_run(struct redactor *r, struct slice bytes)
{
	size_t i = 0;
	for (; i < bytes.len && ascii_base64((unsigned char)bytes.ptr[i]) >= 0; i++)
		put_digit(r, bytes.ptr[i]);
	if (i == bytes.len)
		return i;
	r->old_pads = 4 - r->recode.old_place;
	bool had_padding = is_padding(r, bytes.ptr[i]);
	end_run(r, had_padding);
	if (had_padding)
		r->state = REDACT_PADDING;
	return i;
}

/* How many bytes are padding, which is written already. */
static size_t pass_padding(struct redactor *r, struct slice bytes)
{
	size_t i = 0;
	while (i < bytes.len && bytes.ptr[i] == '=' && r->old_pads > 0) {
		i++;
		r->old_pads--;
	}
	if (i < bytes.len || r->old_pads == 0)
		r->state = REDACT_PLAIN;
	return i;
}

static void pass_in_place(struct redactor *r, struct slice bytes)
{
	if (bytes.len == 0)
		return;
	flush(r);
	bytes = slice_from(bytes, r->ahead);
	r->ahead = 0;
	r->align = 0;
	if (bytes.len > 0)
		r->sink(r->arg, bytes);
}

static void pass(struct redactor *r, struct slice bytes)
{
	if (r->keeps_length) {
		pass_in_place(r, bytes);
		return;
	}
	if (r->state == REDACT_RUN)
		bytes = slice_from(bytes, pass_run(r, bytes));
	if (r->state == REDACT_PADDING)
		bytes = slice_from(bytes, pass_padding(r, bytes));
	if (bytes.len == 0)
		return;
	flush(r);
	r->sink(r->arg, bytes);
	recode_note(&r->recode, bytes);
}

/* ---- placeholders ---- */

static void put_raw(struct redactor *r, struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		put(r, s.ptr + i, 1);
}

static void put_percent(struct redactor *r, struct slice s)
{
	char escape[ESCAPE_PERCENT];
	for (size_t i = 0; i < s.len; i++)
		put(r, escape, escape_percent((unsigned char)s.ptr[i], escape));
}

static void put_json(struct redactor *r, struct slice s)
{
	char escape[ESCAPE_JSON];
	for (size_t i = 0; i < s.len; i++)
		put(r, escape, escape_json((unsigned char)s.ptr[i], escape));
}

/* In the case of the first letter that the value was written with. */
static void put_hex(struct redactor *r, struct slice s, struct slice value)
{
	const char *digits = "0123456789abcdef";
	size_t i = 0;
	while (i < value.len && ascii_is_digit((unsigned char)value.ptr[i]))
		i++;
	if (i < value.len && value.ptr[i] < 'a')
		digits = "0123456789ABCDEF";
	for (i = 0; i < s.len; i++)
		put_byte_as_hex(r, (unsigned char)s.ptr[i], digits);
}

/* A value begins with this digit that is not part of the run: it is in another form, or at another place of a group. */
static void leave_run(struct redactor *r, char digit)
{
	if (r->align > 0)
		put_digit(r, digit);
	end_run(r, false);
}

static void put_bits(struct redactor *r, unsigned bits, unsigned n)
{
	char *to = room_for(r, RECODE_BYTE);
	r->n_out += recode_bits(&r->recode, bits, n, to);
}

/* A value in a run that we are in already, at the place where its digits fall, is part of that run. Else a run begins
 * with it. The bits before and behind the value stay; those behind come with the next bytes that pass. */
static void put_base64(struct redactor *r, struct slice s, struct slice value, const struct known_match *m)
{
	struct known_place next = known_behind(m);
	recode_note(&r->recode, value);
	if (r->state == REDACT_RUN && r->recode.old_place != m->align)
		leave_run(r, value.ptr[0]);
	if (r->state != REDACT_RUN)
		recode_start(&r->recode, m->align);
	r->state = REDACT_RUN;
	if (r->align == 0) {
		unsigned first = (unsigned)ascii_base64((unsigned char)value.ptr[0]);
		put_bits(r, first >> (6 - 2 * m->align), 2 * m->align);
	}
	for (size_t i = 0; i < s.len; i++)
		put_bits(r, (unsigned char)s.ptr[i], 8);
	r->recode.old_place = (unsigned)(m->align + next.at - m->start) % 4;
	r->align = next.align;
}

/* A digit of base64 that the next value may begin in is written here. */
static void overwrite(struct redactor *r, const struct known_match *m)
{
	struct known_place next = known_behind(m);
	const char *fill = m->form == KNOWN_HEX || m->form == KNOWN_BASE64 ? "0" : "*";
	for (size_t i = m->start + r->ahead; i < m->end; i++)
		put(r, fill, 1);
	r->ahead = m->end - next.at;
	r->align = next.align;
}

static void put_placeholder(struct redactor *r, struct slice text, const struct known_match *m)
{
	if (r->keeps_length) {
		overwrite(r, m);
		return;
	}
	struct slice s = r->placeholders[m->item->secret];
	struct slice value = slice_of(text.ptr + m->start, m->end - m->start);
	if (m->form == KNOWN_BASE64) {
		put_base64(r, s, value, m);
		return;
	}
	if (r->state == REDACT_RUN)
		leave_run(r, value.ptr[0]);
	r->state = REDACT_PLAIN;
	r->recode.is_url = false;
	switch (m->form) {
	case KNOWN_PERCENT:
		put_percent(r, s);
		break;
	case KNOWN_JSON:
		put_json(r, s);
		break;
	case KNOWN_HEX:
		put_hex(r, s, value);
		break;
	case KNOWN_RAW:
	case KNOWN_BASE64:
	case KNOWN_LOOSE:
	case KNOWN_REVERSED:
	case KNOWN_FORMS:
		put_raw(r, s);
		break;
	}
}

/* ---- in ---- */

static size_t redact_read(void *arg, struct slice text, size_t limit, bool is_end)
{
	struct redactor *r = arg;
	size_t at = 0;
	enum known_answer answer = KNOWN_FOUND;
	while (answer == KNOWN_FOUND && at < limit) {
		struct known_match m = {.start = limit};
		answer = known_next(r->set, text, (struct known_place){at, r->align}, limit, is_end, &m);
		pass(r, slice_of(text.ptr + at, m.start - at));
		at = m.start;
		if (answer == KNOWN_FOUND) {
			if (m.item->secret < LIMIT_SECRETS)
				r->found |= (uint64_t)1 << m.item->secret;
			r->is_changed = true;
			put_placeholder(r, text, &m);
			at = known_behind(&m).at;
		}
	}
	flush(r);
	return at;
}

/* The text ends, and all of it was read. */
static void finish(struct redactor *r)
{
	if (r->state == REDACT_RUN)
		end_run(r, false);
	flush(r);
	r->state = REDACT_PLAIN;
	r->recode = (struct recode){0};
	r->align = 0;
}

struct redactor *redactor_new(const struct known_set *set, const struct slice *placeholders, redact_sink *sink,
			      void *arg)
{
	struct redactor *r = malloc(sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct redactor){.set = set, .placeholders = placeholders, .sink = sink, .arg = arg};
	return r;
}

void redactor_keep_length(struct redactor *r)
{
	r->keeps_length = true;
}

void redactor_set_known(struct redactor *r, const struct known_set *set)
{
	r->set = set;
}

enum cage_status redactor_feed(struct redactor *r, struct slice piece)
{
	return held_feed(&r->held, piece, redact_read, r);
}

enum cage_status redactor_end(struct redactor *r)
{
	held_end(&r->held, redact_read, r);
	finish(r);
	return CAGE_OK;
}

uint64_t redactor_found(const struct redactor *r)
{
	return r->found;
}

size_t redactor_kept(const struct redactor *r)
{
	return r->held.len;
}

void redactor_free(struct redactor **r)
{
	if (!*r)
		return;
	held_free(&(*r)->held);
	free(*r);
	*r = NULL;
}

/* ---- a whole text ---- */

static void count(void *arg, struct slice bytes)
{
	*(size_t *)arg += bytes.len;
}

static void append(void *arg, struct slice bytes)
{
	char **to = arg;
	memcpy(*to, bytes.ptr, bytes.len);
	*to += bytes.len;
}

/* Was anything taken out? */
static bool redact_whole(const struct known_set *set, const struct slice *placeholders, struct slice text,
			 redact_sink *sink, void *arg, uint64_t *found)
{
	struct redactor r = {.set = set, .placeholders = placeholders, .sink = sink, .arg = arg};
	redact_read(&r, text, text.len, true);
	finish(&r);
	*found = r.found;
	return r.is_changed;
}

enum cage_status redact_text(const struct known_set *set, const struct slice *placeholders, struct slice text,
			     struct arena *arena, struct slice *out, uint64_t *found)
{
	size_t len = 0;
	*out = text;
	if (!redact_whole(set, placeholders, text, count, &len, found))
		return CAGE_OK;
	char *buf = arena_alloc(arena, len);
	if (!buf)
		return CAGE_ENOMEM;
	*out = slice_of(buf, len);
	redact_whole(set, placeholders, text, append, &buf, found);
	return CAGE_OK;
}
