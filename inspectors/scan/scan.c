/* A text in pieces. Hyperscan says where a format may end; from there PCRE2 looks for matches in order, each as long as
 * it can be, and never twice at the same place. What could change with bytes that are not there yet waits for them. So
 * the hits of a text are the same however it was cut, and many candidates of one secret are one hit.
 *
 * Only the bytes that a match can reach back over are kept between pieces. The exact matches are bounded by the length
 * of the text, since somebody may write one that is nothing but candidates (THREATS T32). */
#include "inspectors/scan/scan.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "inspectors/scan/set.h"
#include "inspectors/scan/tail.h"

#define PART (1u << 30) /* bytes that Hyperscan is given at once: its lengths have 32 bits */

/* A format that has had a candidate in this text. */
struct track {
	unsigned format;
	unsigned confirms; /* matches that were judged */
	bool is_spent;     /* was reported as bounded: nothing more is said about it */
	uint64_t from;     /* matches that begin before it are settled */
	uint64_t last;     /* where the newest candidate ends; at `from` or before: all is settled */
	uint64_t wake;     /* how long the text must be before another look is worth it */
};

enum scan_state { SCAN_TEXT, SCAN_ENDED };

struct scan {
	const struct scan_set *set;
	scan_found *found;
	void *arg;
	hs_stream_t *stream;
	enum scan_state state;
	enum cage_status status; /* what a callback met */
	uint64_t pos;            /* of the piece in the text */
	struct slice piece;
	struct tail tail;
	struct track *tracks;
	size_t n_tracks, room;
	unsigned *slots; /* format -> its place in tracks + 1; 0: none */
};

static uint64_t known_end(const struct scan *s)
{
	return s->pos + s->piece.len;
}

/* ---- what is found ---- */

static void report(struct scan *s, const struct track *t, enum scan_certainty certainty, struct slice value,
		   uint64_t offset)
{
	struct scan_hit hit = {&s->set->formats[t->format], certainty, value, offset};
	s->found(s->arg, &hit);
}

static void give_up(struct scan *s, struct track *t)
{
	t->is_spent = true;
	report(s, t, SCAN_BOUNDED, SLICE_NONE, t->from);
}

/* Bytes to look at, and where they stand in the text. */
struct look {
	struct confirm_window window;
	uint64_t base;
};

/* Around t->from: in the piece, or over the seam if the match may begin before it. */
static bool look_at(struct scan *s, struct track *t, struct look *v)
{
	uint64_t last_start = t->last - 1;
	v->window.bytes = s->piece;
	v->base = s->pos;
	if (t->from <= s->pos && s->tail.len > 0) {
		if (tail_join(&s->tail, s->piece) != CAGE_OK)
			return false;
		v->window.bytes = slice_of(s->tail.buf, s->tail.len + s->tail.joined);
		v->base = s->pos - s->tail.len;
		if (last_start > s->pos)
			last_start = s->pos;
	}
	if (v->base > 0 && t->from <= v->base)
		t->from = v->base + 1;
	v->window.from = (size_t)(t->from - v->base);
	v->window.limit = (size_t)(last_start - v->base);
	v->window.bytes = slice_head(v->window.bytes, v->window.limit + s->set->reach);
	v->window.is_end = s->state == SCAN_ENDED;
	return true;
}

/* A match was found: does it count? */
static void judge(struct scan *s, struct track *t, const struct look *v, const struct confirm_match *m, bool passes)
{
	uint64_t start = v->base + m->start;
	if (t->confirms++ >= LIMIT_SCAN_CONFIRMS * (start / 1024 + 1)) {
		give_up(s, t);
		return;
	}
	t->from = passes ? v->base + m->end : start + 1;
	if (passes)
		report(s, t, SCAN_CONFIRMED, m->value, v->base + (uint64_t)(m->value.ptr - v->window.bytes.ptr));
}

/* The next match of that format, if it can be told. False: nothing more can be done now. */
static bool settle_one(struct scan *s, struct track *t)
{
	struct look v;
	struct confirm_match m;
	bool passes;
	struct confirm *exact = scan_set_exact(s->set, t->format);
	if (!exact || !look_at(s, t, &v)) {
		s->status = CAGE_ENOMEM;
		return false;
	}
	switch (confirm_find(exact, &v.window, &m, &passes)) {
	case CONFIRM_NONE:
		t->from = v.base + v.window.limit + 1;
		return true;
	case CONFIRM_MATCH:
		judge(s, t, &v, &m, passes);
		return true;
	case CONFIRM_MORE:
		t->from = v.base + m.start;
		t->wake = t->from + s->set->formats[t->format].max_len + 1;
		return false;
	case CONFIRM_BOUNDED:
		break;
	}
	give_up(s, t);
	return false;
}

static void settle(struct scan *s, struct track *t)
{
	if (s->state == SCAN_TEXT && known_end(s) < t->wake)
		return;
	while (!t->is_spent && t->from < t->last && settle_one(s, t))
		;
}

static void settle_all(struct scan *s)
{
	for (size_t i = 0; i < s->n_tracks && s->status == CAGE_OK; i++)
		settle(s, &s->tracks[i]);
}

/* ---- candidates ---- */

static struct track *track_add(struct scan *s, unsigned format)
{
	if (s->n_tracks == s->room) {
		size_t room = s->room ? s->room * 2 : 4;
		struct track *tracks = realloc(s->tracks, room * sizeof(*tracks));
		if (!tracks)
			return NULL;
		s->tracks = tracks;
		s->room = room;
	}
	struct track *t = &s->tracks[s->n_tracks++];
	*t = (struct track){.format = format};
	s->slots[format] = (unsigned)s->n_tracks;
	return t;
}

/* A candidate that ends at `to`. What lies between it and the one before is left out if no match can be there. */
static void note(struct scan *s, struct track *t, uint64_t to)
{
	uint64_t max_len = s->set->formats[t->format].max_len;
	if (t->from < t->last && to > t->last + max_len)
		settle(s, t);
	if (t->from >= t->last && to > max_len && t->from < to - max_len)
		t->from = to - max_len;
	if (to > t->last)
		t->last = to;
}

static int on_candidate(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct scan *s = arg;
	(void)from; /* not asked for */
	(void)flags;
	struct track *t = s->slots[id] ? &s->tracks[s->slots[id] - 1] : track_add(s, id);
	if (!t)
		s->status = CAGE_ENOMEM;
	else if (!t->is_spent)
		note(s, t, to);
	return s->status != CAGE_OK;
}

/* ---- a text ---- */

struct scan *scan_new(const struct scan_set *set, scan_found *found, void *arg)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct scan){.set = set, .found = found, .arg = arg, .tail.reach = set->reach};
	if (!set->database)
		return s;
	s->slots = calloc(set->n, sizeof(*s->slots));
	if (!s->slots || hs_open_stream(set->database, 0, &s->stream) != HS_SUCCESS)
		scan_free(&s);
	return s;
}

/* What a call to Hyperscan has come to. */
static enum cage_status outcome(const struct scan *s, hs_error_t result)
{
	if (s->status != CAGE_OK || result == HS_SUCCESS)
		return s->status;
	return result == HS_NOMEM ? CAGE_ENOMEM : CAGE_ESYS;
}

static enum cage_status feed_part(struct scan *s, struct slice part)
{
	s->piece = part;
	s->status = outcome(
		s, hs_scan_stream(s->stream, part.ptr, (unsigned)part.len, 0, s->set->scratch, on_candidate, s));
	settle_all(s);
	if (s->status == CAGE_OK)
		s->status = tail_keep(&s->tail, part);
	s->piece = SLICE_NONE;
	s->pos += part.len;
	return s->status;
}

enum cage_status scan_feed(struct scan *s, struct slice piece)
{
	if (!s->stream)
		return CAGE_OK;
	while (piece.len > 0 && s->status == CAGE_OK) {
		s->status = feed_part(s, slice_head(piece, PART));
		piece = slice_from(piece, PART);
	}
	return s->status;
}

/* Resetting the stream is what makes Hyperscan report what ends with the text. */
enum cage_status scan_end(struct scan *s)
{
	if (!s->stream || s->status != CAGE_OK)
		return s->status;
	s->state = SCAN_ENDED;
	s->status = outcome(s, hs_reset_stream(s->stream, 0, s->set->scratch, on_candidate, s));
	settle_all(s);
	return s->status;
}

enum cage_status scan_reset(struct scan *s, void *arg)
{
	hs_error_t result = HS_SUCCESS;
	if (s->stream && (s->state == SCAN_TEXT || s->status != CAGE_OK))
		result = hs_reset_stream(s->stream, 0, NULL, NULL, NULL);
	for (size_t i = 0; i < s->n_tracks; i++)
		s->slots[s->tracks[i].format] = 0;
	s->n_tracks = 0;
	tail_clear(&s->tail);
	s->pos = 0;
	s->arg = arg;
	s->state = SCAN_TEXT;
	s->status = CAGE_OK;
	return outcome(s, result);
}

void scan_free(struct scan **s)
{
	if (!*s)
		return;
	if ((*s)->stream)
		hs_close_stream((*s)->stream, NULL, NULL, NULL);
	tail_free(&(*s)->tail);
	free((*s)->tracks);
	free((*s)->slots);
	free(*s);
	*s = NULL;
}
