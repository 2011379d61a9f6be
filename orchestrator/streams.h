/* stdin, stdout and stderr of CMD where ours are files: it gets pipes. By /proc/self/fd a file could be opened anew, to be
 * written where it was given to be read, or read where it was given to be written. */
#ifndef CAGE_ORCHESTRATOR_STREAMS_H
#define CAGE_ORCHESTRATOR_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/limits.h"

struct streams {
	int ours[3], theirs[3];  /* ends of the pipes; -1: none, or closed */
	char left[LIMIT_STREAM]; /* of stdin, not yet taken */
	size_t n_left;
	bool failed; /* a file could not be written: it was said */
};

/* False with a message. */
bool streams_open(struct streams *s);

/* In the child: the pipes in the place of files. */
void streams_enter(const struct streams *s);

/* In the parent, once the child has them. */
void streams_begin(struct streams *s);

/* What poll() has to wait for at ours[fd]. */
short streams_events(int fd);

/* Passes on what there is, after poll() said so of ours[fd]. */
void streams_pass(struct streams *s, int fd);

/* Passes on what was written last, and closes all. */
void streams_close(struct streams *s);

#endif
