/* The user is changed, which takes all capabilities out of effect, and the one to read is put back. */
#include "orchestrator/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of those that we may have. */
static bool put_in_effect(__u32 first, __u32 else_second)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	if (syscall(SYS_capget, &head, sets) != 0)
		return false;
	sets[0].effective = sets[0].permitted & (sets[0].permitted & first ? first : else_second);
	sets[1].effective = 0;
	return syscall(SYS_capset, &head, sets) == 0;
}

/* Root of most containers has not the one that is only for reading, but the one for all that permissions say. */
static bool let_read(void)
{
	return put_in_effect(1U << CAP_DAC_READ_SEARCH, 1U << CAP_DAC_OVERRIDE);
}

bool rights_lower(struct rights *r, const struct owner *owner)
{
	*r = (struct rights){.gid = getegid()};
	if (geteuid() != 0 || owner->uid == 0)
		return true;
	r->n_groups = getgroups((int)(sizeof(r->groups) / sizeof(r->groups[0])), r->groups);
	if (r->n_groups < 0)
		return false;
	r->is_lowered = true;
	if (setgroups(0, NULL) == 0 && setegid(owner->gid) == 0 && seteuid(owner->uid) == 0 && let_read())
		return true;
	int error = errno;
	rights_restore(r);
	errno = error;
	return false;
}

void rights_end_reading(const struct rights *r)
{
	if (r->is_lowered && !put_in_effect(0, 0))
		abort();
}

void rights_restore(struct rights *r)
{
	if (!r->is_lowered)
		return;
	r->is_lowered = false;
	if (seteuid(0) != 0 || setegid(r->gid) != 0 || setgroups((size_t)r->n_groups, r->groups) != 0)
		abort();
}
