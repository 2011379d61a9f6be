/* /proc with the processes of the room only, and of /sys what programs ask for the number of processors. */
#include "orchestrator/gate/proc.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/say.h"

#define HARMLESS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Locks of open files are shown whoever holds them, and their ranges are 126 bits that the holder chooses: text between rooms. */
static const char *const hidden[] = {
	"/proc/acpi",        "/proc/asound",        "/proc/config.gz", "/proc/kallsyms",    "/proc/kcore",
	"/proc/key-users",   "/proc/keys",          "/proc/kmsg",      "/proc/kpagecgroup", "/proc/kpagecount",
	"/proc/kpageflags",  "/proc/latency_stats", "/proc/locks",     "/proc/modules",     "/proc/mtrr",
	"/proc/sched_debug", "/proc/scsi",          "/proc/slabinfo",  "/proc/timer_list",  "/proc/timer_stats",
	"/proc/vmallocinfo",
};

static const char *const read_only[] = {"/proc/bus", "/proc/dynamic_debug", "/proc/fs",      "/proc/irq",
					"/proc/sys", "/proc/sysrq-trigger", "/proc/pressure"};

static const char *const shown[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};

/* The first process of the room, which is the gate's, is not shown. The kernel refuses a new /proc where a container
 * has parts of its own covered; then that one is all there is, and shows the container's other processes. */
static int new_proc(void)
{
	static const char *const settings[] = {"hidepid", "2", NULL};
	int tree = mount_tree_kernel("proc", settings, HARMLESS);
	if (tree >= 0 || errno != EPERM)
		return tree;
	say("this container refuses a new /proc: its own is shown, with its other processes");
	tree = mount_tree_clone("/proc");
	return tree < 0 || mount_tree_restrict(tree, HARMLESS) == 0 ? tree : -1;
}

int proc_plan(struct plan *plan)
{
	if (plan_tree(plan, new_proc(), "/proc") < 0)
		return -1;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		int tree = mount_tree_clone(shown[i]);
		if (tree < 0 && errno == ENOENT)
			continue;
		if (plan_tree(plan, tree, shown[i]) < 0)
			return -1;
		if (mount_tree_restrict(tree, HARMLESS | MOUNT_ATTR_RDONLY) < 0)
			return say_errno(shown[i]);
	}
	return 0;
}

static int attach_and_close(int tree, const char *path)
{
	int result = tree < 0 ? -1 : mount_tree_attach(tree, path);
	if (result < 0)
		say_errno(path);
	if (tree >= 0)
		close(tree);
	return result;
}

int proc_hide(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) /* EACCES: nobody in the room has more rights than we have here */
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : say_errno(path);
	const struct memory nothing = {KIB(4), 1};
	if (S_ISDIR(st.st_mode))
		return attach_and_close(mount_tree_tmpfs(nothing, "0555", HARMLESS | MOUNT_ATTR_RDONLY), path);
	return attach_and_close(mount_tree_clone("/dev/null"), path);
}

static int make_read_only(const char *path)
{
	int tree = mount_tree_clone(path);
	if (tree < 0)
		return errno == ENOENT ? 0 : say_errno(path);
	if (mount_tree_restrict(tree, HARMLESS | MOUNT_ATTR_RDONLY) < 0) {
		close(tree);
		return say_errno(path);
	}
	return attach_and_close(tree, path);
}

int proc_close(void)
{
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++)
		if (make_read_only(read_only[i]) < 0)
			return -1;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (proc_hide(hidden[i]) < 0)
			return -1;
	return 0;
}
