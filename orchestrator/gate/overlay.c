/* The kernel's overlay. Who mounts it needs the rights to the files below, and so do those who change them: for root,
 * whose agent is another user, the owner's id is mapped to the agent's on the mount, and nowhere else. */
#include "orchestrator/gate/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/privileges.h"

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
		if (fd >= 0)
			close(fd);
		return false;
	}
	bool good = fstat(fd, &st) == 0 && is_ours(&st);
	for (struct dirent *e = readdir(dir); e && good; e = readdir(dir))
		good = (e->d_name[0] == '.' && e->d_name[1] == '.' && e->d_name[2] == '\0') ||
		       (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(&st));
	closedir(dir);
	if (!good)
		errno = EOVERFLOW;
	return good;
}

/* It need not outlive a crash of the machine, so nobody waits for disks. */
static int mount_overlay(const char *state)
{
	char lower[PATH_MAX], upper[PATH_MAX], work[PATH_MAX];
	const char *const settings[] = {"lowerdir",  lower, "upperdir", upper, "workdir", work,
					"userxattr", NULL,  "volatile", NULL,  NULL};
	if (snprintf(lower, sizeof(lower), "%s/lower", state) >= (int)sizeof(lower) ||
	    snprintf(upper, sizeof(upper), "%s/upper", state) >= (int)sizeof(upper) ||
	    snprintf(work, sizeof(work), "%s/work", state) >= (int)sizeof(work)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return mount_tree_kernel("overlay", settings, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* What is mounted at state/lower goes away with the old root; the overlay has a hold of its own on it. */
int overlay_make(int lower, const char *state)
{
	char place[PATH_MAX];
	if (lower < 0)
		return -1;
	int n = snprintf(place, sizeof(place), "%s/lower", state);
	int tree = n < (int)sizeof(place) && mount_tree_restrict(lower, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) == 0 &&
				   mount_tree_attach(lower, place) == 0
			   ? mount_overlay(state)
			   : -1;
	int error = errno;
	close(lower);
	errno = error;
	if (tree < 0 || can_change(tree))
		return tree;
	close(tree);
	errno = EOVERFLOW;
	return -1;
}
