/* Room on the disk of the state that is kept for the end of sandboxes: with a full disk nothing could be deleted otherwise, since
 * that is written down too. It is a file that holds the blocks; it is given back when the database can't be written, and taken
 * again when there is room. Until then no sandbox is made or started. */
#ifndef CAGE_SERVICE_RESERVE_H
#define CAGE_SERVICE_RESERVE_H

#include <stdbool.h>

#include "orchestrator/backend.h"

struct reserve {
	char path[BACKEND_PATH];
	enum { RESERVE_GIVEN, RESERVE_HELD } state;
};

/* state: the directory. One that can't be taken now is taken later. */
void reserve_open(struct reserve *r, const char *state);

/* True: the disk has more room than before. */
bool reserve_give(struct reserve *r);

/* If it was given, and there is room for it and some more. */
void reserve_take(struct reserve *r);

/* May something be made on this disk? */
bool reserve_has_room(const struct reserve *r);

#endif
