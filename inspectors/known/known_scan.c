/* Each match is reported where it stands; the search goes on behind it. */
#include "inspectors/known/known_scan.h"

#include <stdlib.h>

#include "inspectors/known/held.h"
#include "inspectors/known/known_private.h"

struct known_scan {
	const struct known_set *set;
	known_found *found;
	void *arg;
	uint64_t offset; /* of what is read next */
	unsigned align;  /* and whether its first digit belongs to two values: see struct known_place */
	struct held held;
};

struct known_scan *known_scan_new(const struct known_set *set, known_found *found, void *arg)
{
	struct known_scan *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->set = set;
	s->found = found;
	s->arg = arg;
	return s;
}

static size_t scan_read(void *arg, struct slice text, size_t limit, bool is_end)
{
	struct known_scan *s = arg;
	struct known_place place = {0, s->align};
	struct known_match m;
	enum known_answer answer = KNOWN_FOUND;
	while (answer == KNOWN_FOUND && place.at < limit) {
		answer = known_next(s->set, text, place, limit, is_end, &m);
		if (answer == KNOWN_FOUND) {
			struct slice bytes = slice_of(text.ptr + m.start, m.end - m.start);
			s->found(s->arg, m.item, bytes, s->offset + m.start);
			place = known_behind(&m);
		}
	}
	if (answer == KNOWN_PARTIAL && m.start > place.at)
		place = (struct known_place){m.start, 0};
	else if (answer == KNOWN_NONE)
		place = (struct known_place){limit, 0};
	s->offset += place.at;
	s->align = place.align;
	return place.at;
}

enum cage_status known_scan_feed(struct known_scan *s, struct slice piece)
{
	return held_feed(&s->held, piece, scan_read, s);
}

enum cage_status known_scan_end(struct known_scan *s)
{
	held_end(&s->held, scan_read, s);
	return CAGE_OK;
}

void known_scan_reset(struct known_scan *s, void *arg)
{
	held_clear(&s->held);
	s->arg = arg;
	s->offset = 0;
	s->align = 0;
}

void known_scan_free(struct known_scan **s)
{
	if (!*s)
		return;
	held_free(&(*s)->held);
	free(*s);
	*s = NULL;
}
