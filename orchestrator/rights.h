/* Root does in a directory of another user only what that user could do, who may be changing it at that moment. */
#ifndef CAGE_ORCHESTRATOR_RIGHTS_H
#define CAGE_ORCHESTRATOR_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "orchestrator/tree.h"

struct rights {
	bool is_lowered;
	gid_t gid;
	gid_t groups[64];
	int n_groups;
};

/* To those of the owner. Nothing is done where we are not root, or the owner is. False with errno. */
bool rights_lower(struct rights *r, const struct owner *owner);

/* Ends the process where it fails. */
void rights_restore(struct rights *r);

#endif
