/* A new root is built up from nothing: programs of the machine that can only be read, memory to write to, and what was
 * asked for. The old root is gone before anything is put into the new one. */
#include "orchestrator/gate/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/gate/dev.h"
#include "orchestrator/gate/etc.h"
#include "orchestrator/gate/machine.h"
#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/next_name.h"
#include "orchestrator/gate/overlay.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/plan.h"
#include "orchestrator/gate/proc.h"
#include "orchestrator/gate/say.h"

static const struct memory tmp = {LIMIT_ROOM_TMP, LIMIT_ROOM_INODES};
static const struct memory home = {LIMIT_ROOM_HOME, LIMIT_ROOM_INODES};
static const struct memory small = {LIMIT_ROOM_SMALL, LIMIT_ROOM_FEW_INODES};

/* What a room has of its own, whatever root it is given. */
static const char *const own[] = {"/dev",  "/proc",     "/sys", "/run", "/tmp", "/home",
				  "/root", MACHINE_ETC, "/.",   "/..",  NULL};

static bool is_in(const char *path, const char *const *list)
{
	while (*list && strcmp(path, *list) != 0)
		list++;
	return *list != NULL;
}

static int plan_copied_link(struct plan *plan, int link, const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n < 0)
		return say_errno(path);
	text[n] = '\0';
	return plan_link(plan, text, path);
}

/* Files are of no use to a program. */
static int plan_open_entry(struct plan *plan, int entry, const char *path)
{
	struct stat st;
	if (fstat(entry, &st) < 0)
		return say_errno(path);
	if (S_ISLNK(st.st_mode))
		return plan_copied_link(plan, entry, path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	int tree = mount_tree_clone_open(entry);
	bool was_removed = tree < 0 && errno == ENOENT;
	return was_removed ? 0 : plan_read_only(plan, tree, path);
}

/* One directory of the root, or a link in its place: what it is when it is opened, whatever has its name later. */
static int plan_entry(struct plan *plan, int root, const char *path)
{
	int entry = openat(root, path + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (entry < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : say_errno(path);
	int result = plan_open_entry(plan, entry, path);
	close(entry);
	return result;
}

static int plan_machine(struct plan *plan)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), result = 0;
	if (root < 0)
		return say_errno("/");
	for (size_t i = 0; machine_trees[i] && result == 0; i++)
		if (!is_in(machine_trees[i], own))
			result = plan_entry(plan, root, machine_trees[i]);
	close(root);
	return result;
}

static int plan_root(struct plan *plan, const char *root)
{
	DIR *dir = opendir(root);
	if (!dir)
		return say_errno(root);
	int result = 0;
	struct dirent *e;
	while (result == 0 && (e = next_name(dir))) {
		char path[NAME_MAX + 2];
		snprintf(path, sizeof(path), "/%s", e->d_name);
		if (!is_in(path, own))
			result = plan_entry(plan, dirfd(dir), path);
	}
	if (result == 0 && errno != 0)
		result = say_errno(root);
	closedir(dir);
	return result;
}

/* A root that has no such directory can't get one: it is only read. */
static int plan_var_tmp(struct plan *plan, const char *root)
{
	char path[PATH_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "%s/var/tmp", root);
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return plan_tree(plan, mount_tree_tmpfs(small, "1777", 0), "/var/tmp");
}

static int plan_memory(struct plan *plan, const struct room *room)
{
	if (plan_tree(plan, mount_tree_tmpfs(tmp, "1777", 0), "/tmp") < 0 ||
	    plan_tree(plan, mount_tree_tmpfs(small, "0755", 0), "/run") < 0 ||
	    plan_tree(plan, mount_tree_tmpfs(home, "0700", 0), room_home(room)) < 0)
		return -1;
	if (room->root)
		return plan_var_tmp(plan, room->root);
	if (plan_tree(plan, mount_tree_tmpfs(small, "0755", 0), "/var") < 0)
		return -1;
	return plan_link(plan, "/run", "/var/run") < 0 ? -1 : plan_link(plan, "/tmp", "/var/tmp");
}

static int plan_bind(struct plan *plan, const struct fitting *f, int opened)
{
	const uint64_t attributes = PLAN_WITHOUT_RIGHTS | (f->kind == FITTING_BIND ? 0 : MOUNT_ATTR_RDONLY);
	int tree = opened >= 0 ? opened : mount_tree_clone_plain(f->source);
	if (tree < 0)
		return plain_say(f->source);
	if (plan_tree(plan, tree, f->path) < 0)
		return -1;
	return mount_tree_restrict(tree, attributes) < 0 ? say_errno(f->source) : 0;
}

static int plan_copied_files(struct plan *plan, const struct fitting *f, int opened)
{
	int tree = opened >= 0 ? opened : mount_tree_clone_plain(f->source);
	return tree < 0 ? plain_say(f->source) : plan_copy(plan, tree, f->path);
}

static int plan_overlay(struct plan *plan, const struct fitting *f, int opened, int state)
{
	int tree = overlay_make(f, opened, state);
	return tree < 0 ? -1 : plan_tree(plan, tree, f->path);
}

static int plan_memory_at(struct plan *plan, const struct fitting *f)
{
	const struct memory most = {f->size, LIMIT_ROOM_INODES};
	return plan_tree(plan, mount_tree_tmpfs(most, "0700", 0), f->path);
}

static int plan_fittings(struct plan *plan, const struct room *room, const struct room_supplies *supplies)
{
	int result = 0;
	for (size_t i = 0; i < room->n_fittings && result == 0; i++) {
		const struct fitting *f = &room->fittings[i];
		plan->option = room_fitting_name(f->kind);
		switch (f->kind) {
		case FITTING_BIND:
		case FITTING_BIND_RO:
		case FITTING_REPLACE:
			result = plan_bind(plan, f, supplies->trees[i]);
			break;
		case FITTING_COPY:
			result = plan_copied_files(plan, f, supplies->trees[i]);
			break;
		case FITTING_OVERLAY:
			result = plan_overlay(plan, f, supplies->trees[i], supplies->states[i]);
			break;
		case FITTING_TMPFS:
			result = plan_memory_at(plan, f);
			break;
		case FITTING_HIDE: /* last of all */
			break;
		}
	}
	return result;
}

static int hide_asked(const struct room *room)
{
	for (size_t i = 0; i < room->n_fittings; i++)
		if (room->fittings[i].kind == FITTING_HIDE && proc_hide(room->fittings[i].path) < 0)
			return -1;
	return 0;
}

/* The new root lies over the old one for a moment, and takes its place. */
static int change_root(void)
{
	int root = mount_tree_tmpfs(small, "0755", 0);
	if (root < 0 || mount_tree_attach(root, "/") < 0 || fchdir(root) < 0)
		return say_errno("new root");
	close(root);
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return say_errno("change of root");
	if (umount2(".", MNT_DETACH) < 0)
		return say_errno("old root");
	return chdir("/") < 0 ? say_errno("new root") : 0;
}

static int finish(const struct room *room, const struct path_sockets *sockets)
{
	if (proc_close() < 0 || path_sockets_hide(sockets) < 0 || hide_asked(room) < 0 || dev_close() < 0 ||
	    etc_close() < 0)
		return -1;
	return mount_tree_restrict_path("/", MOUNT_ATTR_RDONLY) < 0 ? say_errno("/") : 0;
}

int mounts_make(const struct room *room, struct room_supplies *supplies)
{
	static struct plan plan;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		say_errno("private mounts");
		return EXIT_UNLOCKED;
	}
	int shown = room->root ? plan_root(&plan, room->root) : plan_machine(&plan);
	int code = shown < 0 || etc_plan(&plan, room) < 0 || dev_plan(&plan) < 0 || proc_plan(&plan) < 0 ||
				   plan_memory(&plan, room) < 0 || plan_fittings(&plan, room, supplies) < 0
			   ? EXIT_UNLOCKED
			   : 0;
	if (code == 0)
		code = change_root() < 0 ? EXIT_UNLOCKED : plan_place(&plan, &supplies->copies);
	if (code == 0 && finish(room, &supplies->sockets) < 0)
		code = EXIT_UNLOCKED;
	plan_free(&plan);
	return code;
}
