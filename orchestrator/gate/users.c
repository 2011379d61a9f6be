/* One user and one group, mapped by the process itself. */
#include "orchestrator/gate/users.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/write.h"

/* The files of a process that hides are root's, so it shows itself for the moment; nobody is here to look. */
int users_become(uid_t uid)
{
	char map[32];
	snprintf(map, sizeof(map), "%u 0 1\n", uid);
	if (unshare(CLONE_NEWUSER) < 0)
		return say_errno("namespace of the agent");
	prctl(PR_SET_DUMPABLE, 1);
	if (write_text("/proc/self/setgroups", "deny") < 0 || write_text("/proc/self/uid_map", map) < 0 ||
	    write_text("/proc/self/gid_map", map) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return say_errno("uid of the agent");
	privileges_hide();
	privileges_die_with_parent();
	return 0;
}
