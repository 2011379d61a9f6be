/* Between the files of the local backend, and for those that use its keepers. */
#ifndef CAGE_SERVICE_BACKEND_LOCAL_H
#define CAGE_SERVICE_BACKEND_LOCAL_H

#include <stdbool.h>

#include "orchestrator/backend.h"

/* A keeper, with more words in its spec, which count more than those before them; NULL: none. */
pid_t local_start(const struct backend_start *s, const struct words *more);

/* The spec alone, for a keeper whose room stands already. False with errno. */
bool local_begin(const struct backend_start *s, const struct words *more);

/* Its end by force, and its directory. False with errno: something is left. */
bool local_remove(const char *dir);

/* backend_local_reap.c */
bool local_reap(const char *dir);

/* backend_local_cgroups.c: groups of gates that were killed: empty, and of a process that is no more. */
void local_tidy(const char *state);

/* Can a gate make a group with a limit of memory? */
bool local_has_groups(void);

#endif
