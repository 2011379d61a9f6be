/* Six devices that do no harm, terminals of the room's own, and memory to share. */
#include "orchestrator/gate/dev.h"

#include <sys/mount.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/say.h"

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};

static const char *const links[][2] = {
	{"/proc/self/fd", "/dev/fd"},       {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"},
};

/* A device can be opened only without MOUNT_ATTR_NODEV, so only the device itself is bound. */
static int plan_device(struct plan *plan, const char *path)
{
	int tree = mount_tree_clone(path);
	if (plan_tree(plan, tree, path) < 0)
		return -1;
	return mount_tree_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0 ? say_errno(path) : 0;
}

int dev_plan(struct plan *plan)
{
	const struct memory few = {KIB(64), LIMIT_ROOM_DEVICES}, shared = {LIMIT_ROOM_SHM, LIMIT_ROOM_FEW_INODES};
	static const char *const terminals[] = {"ptmxmode", "0666", "mode", "0620", NULL};
	if (plan_tree(plan, mount_tree_tmpfs(few, "0755", MOUNT_ATTR_NOEXEC), "/dev") < 0)
		return -1;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (plan_device(plan, devices[i]) < 0)
			return -1;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (plan_link(plan, links[i][0], links[i][1]) < 0)
			return -1;
	if (plan_tree(plan, mount_tree_kernel("devpts", terminals, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC), "/dev/pts") <
	    0)
		return -1;
	return plan_tree(plan, mount_tree_tmpfs(shared, "1777", 0), "/dev/shm");
}

int dev_close(void)
{
	return mount_tree_restrict_path("/dev", MOUNT_ATTR_RDONLY) < 0 ? say_errno("/dev") : 0;
}
