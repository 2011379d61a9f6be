/* What a user has named to be shown in a room: --bind, --bind-ro, --workspace. */
#ifndef CAGE_ORCHESTRATOR_SHOWN_SOURCE_H
#define CAGE_ORCHESTRATOR_SHOWN_SOURCE_H

#include <stddef.h>

enum shown_way {
	SHOWN_REFUSED, /* with a message: it is not there, or a link on the way is not root's */
	SHOWN_PLAINLY,
	SHOWN_BY_LINK /* of root's, so that it has another name than was given */
};

/* out: its whole name, in which no part is a link. The gate opens it by that, and follows none. */
enum shown_way shown_source(const char *option, const char *name, char *out, size_t room);

#endif
