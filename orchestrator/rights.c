/* The user is changed, which takes all capabilities out of effect. */
#include "orchestrator/rights.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <unistd.h>

bool rights_lower(struct rights *r, const struct owner *owner)
{
	*r = (struct rights){.gid = getegid()};
	if (geteuid() != 0 || owner->uid == 0)
		return true;
	r->n_groups = getgroups((int)(sizeof(r->groups) / sizeof(r->groups[0])), r->groups);
	if (r->n_groups < 0)
		return false;
	r->is_lowered = true;
	if (setgroups(0, NULL) == 0 && setegid(owner->gid) == 0 && seteuid(owner->uid) == 0)
		return true;
	int error = errno;
	rights_restore(r);
	errno = error;
	return false;
}

void rights_restore(struct rights *r)
{
	if (!r->is_lowered)
		return;
	r->is_lowered = false;
	if (seteuid(0) != 0 || setegid(r->gid) != 0 || setgroups((size_t)r->n_groups, r->groups) != 0)
		abort();
}
