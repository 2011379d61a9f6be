/* Capabilities and no_new_privs. */
#include "orchestrator/gate/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

void privileges_hide(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

void privileges_die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Numbers that the kernel does not have give EINVAL, and end the loop. */
static int drop_bounding(void)
{
	for (unsigned long capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
			return errno == EINVAL && capability > 0 ? 0 : -1;
	return 0;
}

int privileges_become(uid_t uid)
{
	if (geteuid() != 0)
		return 0;
	if (drop_bounding() < 0) /* while it may */
		return say_errno("bounding set");
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return say_errno("uid of the agent");
	return 0;
}

/* The bounding set only matters to programs that may gain privileges, which no_new_privs forbids: who may not change
 * it goes without. */
int privileges_drop(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};
	if (drop_bounding() < 0 && errno != EPERM)
		return say_errno("bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return say_errno("ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return say_errno("capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return say_errno("no_new_privs");
	return 0;
}

bool privileges_are_none(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct has[2] = {{0}};
	if (syscall(SYS_capget, &header, has) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return false;
	for (int i = 0; i < 2; i++)
		if (has[i].effective || has[i].permitted || has[i].inheritable)
			return false;
	return geteuid() != 0 && getuid() != 0;
}
