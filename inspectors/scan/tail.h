/* The last bytes of a text that comes in pieces, kept so that a match may begin in one piece and end in another.
 *
 *	buf:  |.. tail ..|.. joined ..|        |
 *	      0         len     len + joined   room
 *
 * joined: the first bytes of the piece that is being looked at, once somebody needs them right behind the tail. */
#ifndef CAGE_INSPECTORS_TAIL_H
#define CAGE_INSPECTORS_TAIL_H

#include "core/base/slice.h"
#include "core/base/status.h"

struct tail {
	char *buf;
	size_t len, joined, room;
	size_t reach; /* bytes that are kept at least, if there were as many; also the most that are joined */
};

/* Has the start of the piece behind the tail: as much of it as a match that begins in the tail can reach. */
enum cage_status tail_join(struct tail *t, struct slice piece) MUST_CHECK;

/* The piece is over: its end is the tail now. */
enum cage_status tail_keep(struct tail *t, struct slice piece) MUST_CHECK;

void tail_clear(struct tail *t);
void tail_free(struct tail *t);

#endif
