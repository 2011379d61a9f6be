/* Between the files of the local backend. */
#ifndef CAGE_SERVICE_BACKEND_LOCAL_H
#define CAGE_SERVICE_BACKEND_LOCAL_H

#include <stdbool.h>

/* backend_local_reap.c */
bool local_reap(const char *dir);

/* backend_local_cgroups.c: groups of gates that were killed: empty, and of a process that is no more. */
void local_tidy(const char *state);

/* Can a gate make a group with a limit of memory? */
bool local_has_groups(void);

#endif
