/* A text in pieces. Hyperscan says where a format may end; from there PCRE2 looks for matches in order, each as long as
 * it can be, and never twice at the same place. What could change with bytes that are not there yet waits for them. So
 * the hits of a text are the same however it was cut, and many candidates of one secret are one hit.
 *
 * Formats with long words in them are looked for near such words only (near.h): the stream for these is given the
 * stretches one behind the other. What seems to match over such a seam is not confirmed.
 *
 * Only the bytes that a match can reach back over are kept between pieces. The exact matches are bounded by the length
 * of the text, since somebody may write one that is nothing but candidates (THREATS T32). */
#include "inspectors/scan/scan.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "inspectors/scan/assigned.h"
#include "inspectors/scan/near.h"
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
	hs_stream_t *streams[SCAN_PASSES];
	struct near near;
	uint64_t given;    /* bytes of the text that the stream near words was given, ... */
	uint64_t ahead;    /* ... and how far the text is ahead of that stream at the stretch under way */
	uint64_t names_at; /* where in the text that begins in which names are looked for */
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

/* A candidate that ends at `to`, of a match that begins at most so far before. What lies between it and the one before is
 * left out if no match can be there. */
static void note(struct scan *s, struct track *t, uint64_t to, uint64_t back)
{
	if (t->from < t->last && to > t->last + back)
		settle(s, t);
	if (t->from >= t->last && to > back && t->from < to - back)
		t->from = to - back;
	if (to > t->last)
		t->last = to;
}

static void candidate_of(struct scan *s, unsigned format, uint64_t to, uint64_t back)
{
	unsigned max_len = s->set->formats[format].max_len;
	struct track *t = s->slots[format] ? &s->tracks[s->slots[format] - 1] : track_add(s, format);
	if (!t)
		s->status = CAGE_ENOMEM;
	else if (!t->is_spent)
		note(s, t, to, back < max_len ? back : max_len);
}

/* Of that format and all that have the same candidates. */
static int candidate(struct scan *s, unsigned format, uint64_t to, uint64_t back)
{
	for (unsigned f = format; f < s->set->n && s->status == CAGE_OK; f = s->set->next_same[f])
		candidate_of(s, f, to, back);
	return s->status != CAGE_OK;
}

/* `from` is not asked for. */
static int on_candidate(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	(void)from, (void)flags;
	return candidate(arg, id, to, UINT64_MAX);
}

static int on_candidate_near(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *arg)
{
	struct scan *s = arg;
	(void)from, (void)flags;
	return candidate(s, id, to + s->ahead, UINT64_MAX);
}

static const match_event_handler on_match[SCAN_PASSES] = {on_candidate, on_candidate_near};

/* ---- a text ---- */

static bool open_streams(struct scan *s)
{
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		if (s->set->databases[p] && hs_open_stream(s->set->databases[p], 0, &s->streams[p]) != HS_SUCCESS)
			return false;
	return true;
}

struct scan *scan_new(const struct scan_set *set, scan_found *found, void *arg)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct scan){.set = set, .found = found, .arg = arg, .tail.reach = set->reach};
	s->slots = calloc(set->n ? set->n : 1, sizeof(*s->slots));
	if (!s->slots || !open_streams(s))
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

static bool feed_stream(struct scan *s, enum scan_pass pass, struct slice bytes)
{
	if (bytes.len > 0 && s->streams[pass])
		s->status = outcome(s, hs_scan_stream(s->streams[pass], bytes.ptr, (unsigned)bytes.len, 0,
						      s->set->scratch, on_match[pass], s));
	return s->status == CAGE_OK;
}

/* Bytes of the text before the piece. A copy, since a candidate in them may move the tail. */
static bool feed_before(struct scan *s, uint64_t from, uint64_t to)
{
	char bytes[SCAN_BEFORE];
	size_t len = (size_t)(to - from);
	memcpy(bytes, s->tail.buf + s->tail.len - (size_t)(s->pos - from), len);
	return feed_stream(s, SCAN_NEAR_WORDS, slice_of(bytes, len));
}

static bool feed_stretch(void *arg, uint64_t from, uint64_t to)
{
	struct scan *s = arg;
	s->ahead = from - s->given;
	s->given += to - from;
	if (from < s->pos && !feed_before(s, from, to < s->pos ? to : s->pos))
		return false;
	uint64_t start = from > s->pos ? from - s->pos : 0;
	uint64_t end = to > s->pos ? to - s->pos : 0;
	return feed_stream(s, SCAN_NEAR_WORDS, slice_head(slice_from(s->piece, (size_t)start), (size_t)(end - start)));
}

/* A name in the piece, or in the tail with the piece behind it. */
static bool see_name(void *arg, size_t at, size_t before)
{
	struct scan *s = arg;
	uint64_t place = s->names_at + at;
	if (s->names_at < s->pos && place >= s->pos)
		return false; /* comes again with the piece */
	(void)candidate(s, s->set->first_assigned, place + 1, before + 1);
	return s->status == CAGE_OK;
}

/* Names that begin in the tail and could not be told before come first. */
static void feed_seam(struct scan *s)
{
	s->status = tail_join(&s->tail, s->piece);
	size_t untold = s->tail.len < ASSIGNED_WORD ? s->tail.len : ASSIGNED_WORD - 1;
	struct slice seam = slice_of(s->tail.buf + s->tail.len - untold, untold + s->tail.joined);
	s->names_at = s->pos - untold;
	if (s->status == CAGE_OK)
		(void)assigned_find(slice_head(seam, untold + ASSIGNED_BEHIND), see_name, s);
}

static void feed_names(struct scan *s)
{
	if (s->tail.len > 0)
		feed_seam(s);
	s->names_at = s->pos;
	if (s->status == CAGE_OK)
		(void)assigned_find(s->piece, see_name, s);
}

static enum cage_status feed_part(struct scan *s, struct slice part)
{
	s->piece = part;
	if (feed_stream(s, SCAN_EVERYWHERE, part) && s->streams[SCAN_NEAR_WORDS])
		(void)near_feed(&s->near, part, feed_stretch, s); /* what it meets is in s->status */
	if (s->status == CAGE_OK && s->set->first_assigned < s->set->n)
		feed_names(s);
	settle_all(s);
	if (s->status == CAGE_OK)
		s->status = tail_keep(&s->tail, part);
	s->piece = SLICE_NONE;
	s->pos += part.len;
	return s->status;
}

enum cage_status scan_feed(struct scan *s, struct slice piece)
{
	if (s->set->n == 0)
		return CAGE_OK;
	while (piece.len > 0 && s->status == CAGE_OK) {
		s->status = feed_part(s, slice_head(piece, PART));
		piece = slice_from(piece, PART);
	}
	return s->status;
}

/* Resetting the streams is what makes Hyperscan report what ends with the text. */
enum cage_status scan_end(struct scan *s)
{
	if (s->status != CAGE_OK)
		return s->status;
	s->state = SCAN_ENDED;
	for (enum scan_pass p = 0; p < SCAN_PASSES && s->status == CAGE_OK; p++)
		if (s->streams[p])
			s->status = outcome(s, hs_reset_stream(s->streams[p], 0, s->set->scratch, on_match[p], s));
	settle_all(s);
	return s->status;
}

static hs_error_t forget_streams(struct scan *s)
{
	hs_error_t result = HS_SUCCESS;
	for (enum scan_pass p = 0; p < SCAN_PASSES && result == HS_SUCCESS; p++)
		if (s->streams[p])
			result = hs_reset_stream(s->streams[p], 0, NULL, NULL, NULL);
	return result;
}

enum cage_status scan_reset(struct scan *s, void *arg)
{
	hs_error_t result = HS_SUCCESS;
	if (s->state == SCAN_TEXT || s->status != CAGE_OK)
		result = forget_streams(s);
	for (size_t i = 0; i < s->n_tracks; i++)
		s->slots[s->tracks[i].format] = 0;
	s->n_tracks = 0;
	tail_clear(&s->tail);
	s->pos = s->given = s->ahead = 0;
	s->near = (struct near){0};
	s->arg = arg;
	s->state = SCAN_TEXT;
	s->status = CAGE_OK;
	return outcome(s, result);
}

void scan_free(struct scan **s)
{
	if (!*s)
		return;
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		if ((*s)->streams[p])
			hs_close_stream((*s)->streams[p], NULL, NULL, NULL);
	tail_free(&(*s)->tail);
	free((*s)->tracks);
	free((*s)->slots);
	free(*s);
	*s = NULL;
}
