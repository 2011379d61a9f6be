/* The kernel's overlay. Who mounts it needs the rights to the files below, and so do those who change them: for root,
 * whose agent is another user, the owner's id is mapped to the agent's on the mount, and nowhere else. */
#include "orchestrator/gate/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/next_name.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"

/* ---- outside ---- */

/* A user namespace lives as long as its descriptor; a process is needed only to make it. */
static int user_namespace(uid_t user, gid_t group, uid_t uid)
{
	char path[64];
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		privileges_die_with_parent();
		for (;;)
			pause();
	}
	if (child < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)child);
	int fd = netns_map_ids(child, user, group, uid) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int error = errno;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	errno = error;
	return fd;
}

static int map_owner(int tree, const struct stat *owner, uid_t uid)
{
	int space = user_namespace(owner->st_uid, owner->st_gid, uid);
	if (space < 0)
		return -1;
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)space};
	int result = mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr));
	int error = errno;
	close(space);
	errno = error;
	return result;
}

int overlay_lower(const char *dir, uid_t uid)
{
	struct stat st;
	int tree = mount_tree_clone_plain(dir);
	if (tree < 0)
		return -1;
	if (fstat(tree, &st) == 0 && ((st.st_uid == uid && st.st_gid == (gid_t)uid) || map_owner(tree, &st, uid) == 0))
		return tree;
	int error = errno;
	close(tree);
	errno = error;
	return -1;
}

/* ---- inside ---- */

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && st->st_gid == getegid();
}

/* The kernel changes nothing whose owner has no id here. How it is at the top is taken for all of the tree. */
static bool can_change(int tree)
{
	struct stat st;
	int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		errno = error;
		return false;
	}
	bool good = fstat(fd, &st) == 0 && is_ours(&st);
	struct dirent *e = NULL;
	while (good && (e = next_name(dir)))
		good = (e->d_name[0] == '.' && e->d_name[1] == '.' && e->d_name[2] == '\0') ||
		       (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(&st));
	good = good && errno == 0;
	closedir(dir);
	if (!good)
		errno = EOVERFLOW;
	return good;
}

/* It need not outlive a crash of the machine, so nobody waits for disks. Names are those in the directory where we are. */
static int mount_overlay(void)
{
	static const char *const settings[] = {"lowerdir",  "lower", "upperdir", "upper", "workdir", "work",
					       "userxattr", NULL,    "volatile", NULL,    NULL};
	return mount_tree_kernel("overlay", settings, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int enter_by_name(const char *state)
{
	int dir = plain_open(state);
	if (dir < 0)
		return -1;
	int result = fchdir(dir);
	int error = errno;
	close(dir);
	errno = error;
	return result;
}

/* What root has opened outside may lie where we could not go, so there is no name for it here. It is put over the old root
 * for a moment: names begin below it. */
static int enter_state(int opened, const char *state)
{
	if (opened < 0)
		return enter_by_name(state);
	return mount_tree_restrict(opened, 0) < 0 || mount_tree_attach(opened, "/") < 0 ? -1 : fchdir(opened);
}

/* Where the state is by now. */
static int mount_below(const struct fitting *f, int lower)
{
	if (mount_tree_restrict(lower, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0)
		return say_errno(f->source);
	if (mount_tree_attach(lower, "lower") < 0) {
		say("%s/lower: %s", f->state, strerror(errno));
		return -1;
	}
	int tree = mount_overlay();
	if (tree < 0)
		say("overlay of %s and %s: %s", f->source, f->state, strerror(errno));
	return tree;
}

/* What is mounted at state/lower goes away with the old root, or with the state; the overlay has a hold of its own on both. */
static int join(const struct fitting *f, int lower, int opened)
{
	if (enter_state(opened, f->state) < 0)
		return plain_say(f->state);
	int tree = mount_below(f, lower);
	if (opened < 0 || umount2(".", MNT_DETACH) == 0)
		return tree;
	say_errno(f->state);
	if (tree >= 0)
		close(tree);
	return -1;
}

int overlay_make(const struct fitting *f, int lower, int opened)
{
	int source = lower >= 0 ? lower : mount_tree_clone_plain(f->source);
	int tree = source < 0 ? plain_say(f->source) : join(f, source, opened);
	if (source >= 0)
		close(source);
	if (opened >= 0)
		close(opened);
	if (tree < 0 || can_change(tree))
		return tree;
	say_errno(f->source);
	close(tree);
	return -1;
}
