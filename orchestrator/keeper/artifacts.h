/* Taking single files out of the room when its command has succeeded: the artifacts that others of a workflow need, into
 * artifacts/N. Names are the service's, contents the sandbox's: a regular file to which no link leads, and no longer than it may be.
 * One that is not so makes a failure of the success. */
#ifndef CAGE_KEEPER_ARTIFACTS_H
#define CAGE_KEEPER_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper;

struct artifacts {
	size_t at;    /* which one is under way; all before it are out */
	uint16_t job; /* of the room that reads it; 0: none */
	int fd;
	uint64_t bytes; /* of it that have come */
};

/* Has it succeeded, and are there artifacts that are not out? */
bool artifacts_are_wanted(const struct keeper *k);

/* keeper_took_artifacts() follows, unless the time of the state is over before. */
void artifacts_begin(struct keeper *k);

/* The room has ended. What is not out by now makes it fail. */
void artifacts_end(struct keeper *k);

#endif
