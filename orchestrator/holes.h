/* Files with holes: an agent can make one of a size that no disk has, at no cost. Who reads only what is not a hole is done
 * with it at once. */
#ifndef CAGE_ORCHESTRATOR_HOLES_H
#define CAGE_ORCHESTRATOR_HOLES_H

#include <sys/types.h>

/* Finds the next bytes at *at or behind it that are not in a hole, up to *end. 1: there are some, 0: there are none, -1 with
 * errno. */
int holes_skip(int fd, off_t *at, off_t *end);

#endif
