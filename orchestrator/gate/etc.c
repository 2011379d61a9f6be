/* Directories that everybody may read are bound, others are made anew with what everybody may read in them, as are links, and
 * files are copied: names are asked for at the gate's resolver, and the users of the machine are nobody's business. */
#include "orchestrator/gate/etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/below.h"
#include "orchestrator/gate/etc_scan.h"
#include "orchestrator/gate/machine.h"
#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/names.h"
#include "orchestrator/gate/next_name.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

enum { LONGEST = sizeof(MACHINE_ETC) + (LIMIT_ROOM_ETC_DEPTH + 1) * (NAME_MAX + 1) };

struct etc {
	const struct room *room;
	struct plan *plan;
	size_t copied;      /* bytes, in whole pages */
	size_t bound_below; /* things below directories that are made anew */
};

/* A directory of the machine's, and that of the room which is being made of it. */
struct level {
	int from, to;
	unsigned depth; /* 0: /etc itself */
	size_t n;       /* its names, of /etc itself */
	size_t *left;   /* names that may still be looked at below the directory of /etc that this is in */
};

/* ---- the room's own ---- */

static const char *const own[] = {"resolv.conf", "hosts", "passwd", "group", "hostname"};

static int put_file(int dir, const char *name, const char *text)
{
	const size_t len = strlen(text);
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return say_errno(name);
	int result = write(fd, text, len) == (ssize_t)len && fchmod(fd, 0644) == 0 ? 0 : say_errno(name);
	close(fd);
	return result;
}

static int put_users(int dir, const struct room *room)
{
	char passwd[PATH_MAX + 512], group[256];
	int n = snprintf(passwd, sizeof(passwd),
			 "root:x:0:0:root:/:/bin/false\nagent:x:%u:%u:agent:%s:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/:/bin/false\n",
			 room->uid, room->uid, room_home(room));
	if (n >= (int)sizeof(passwd)) {
		errno = ENAMETOOLONG;
		return say_errno("HOME");
	}
	snprintf(group, sizeof(group), "root:x:0:\nagent:x:%u:\nnogroup:x:65534:\n", room->uid);
	return put_file(dir, "passwd", passwd) < 0 ? -1 : put_file(dir, "group", group);
}

static int put_own(int dir, const struct room *room)
{
	const char *hostname = room->hostname ? room->hostname : "cage";
	char hosts[NAMES_HOSTS], name[LIMIT_LABEL + 2];
	names_hosts(hostname, hosts);
	snprintf(name, sizeof(name), "%s\n", hostname);
	if (put_file(dir, "resolv.conf", "nameserver 127.0.0.1\n") < 0 || put_file(dir, "hosts", hosts) < 0)
		return -1;
	return put_file(dir, "hostname", name) < 0 ? -1 : put_users(dir, room);
}

/* ---- the machine's ---- */

/* What the room has itself, and what was there before a user was added: "passwd-". */
static bool is_own(const char *name)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return name[strlen(name) - 1] == '-';
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool has_hidden(const struct room *room, const char *path)
{
	for (size_t i = 0; i < room->n_fittings; i++)
		if (room->fittings[i].kind == FITTING_HIDE && path_is_at_or_below(room->fittings[i].path, path))
			return true;
	return false;
}

/* One that others may not read is none of the agent's, whoever runs the gate. */
static bool is_shown(const struct stat *st)
{
	return etc_is_open(st) && (S_ISLNK(st->st_mode) || S_ISDIR(st->st_mode) || S_ISREG(st->st_mode));
}

/* What was there a moment ago, or is another thing by now, is not there. */
static bool is_gone(int error)
{
	return error == EACCES || error == ENOENT || error == ELOOP || error == ENOTDIR;
}

static int add_link(const struct level *at, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(at->from, name, text, sizeof(text) - 1);
	if (n < 0)
		return is_gone(errno) || errno == EINVAL ? 0 : -1;
	text[n] = '\0';
	return symlinkat(text, at->to, name);
}

/* What a file that is copied takes in memory. */
static size_t pages_of(const struct stat *st)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return ((size_t)st->st_size + page - 1) / page * page;
}

static bool is_bound(const struct etc *e, const struct stat *st)
{
	return st->st_size > (off_t)LIMIT_ROOM_ETC_FILE || e->copied + pages_of(st) > LIMIT_ROOM_ETC_ALL;
}

static int leave_out(const char *path, const char *why)
{
	say("%s: %s: it is not in the room", path, why);
	return 0;
}

/* Those in /etc itself are counted by their names. */
static int add_bound(struct etc *e, const struct level *at, int fd, const char *path)
{
	if (at->depth > 0 && e->bound_below++ >= LIMIT_ROOM_ETC_BELOW)
		return leave_out(path, "too much is to be mounted beside what others may not read");
	return plan_read_only(e->plan, mount_tree_clone_open(fd), path);
}

/* What was looked at by its name may be another file by now. */
static int add_open_file(struct etc *e, const struct level *at, int fd, const char *name, const char *path)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return say_errno(path);
	if (!S_ISREG(st.st_mode) || !is_shown(&st))
		return 0;
	if (is_bound(e, &st))
		return add_bound(e, at, fd, path);
	e->copied += pages_of(&st);
	return copy_file(fd, at->to, name, st.st_mode & 0755) < 0 ? say_errno(path) : 0;
}

static int add_file(struct etc *e, const struct level *at, const char *name, const char *path)
{
	int fd = openat(at->from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return is_gone(errno) ? 0 : say_errno(path);
	int result = add_open_file(e, at, fd, name, path);
	close(fd);
	return result;
}

static int add_level(struct etc *e, struct level *at, const char *path);

/* A directory of the room's own, with what everybody may read. */
static int add_anew(struct etc *e, const struct level *above, int fd, const char *name, const char *path)
{
	struct level at = {.from = fd, .to = -1, .depth = above->depth + 1, .left = above->left};
	if (mkdirat(above->to, name, 0755) < 0 ||
	    (at.to = openat(above->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return say_errno(path);
	int result = fchmod(at.to, 0755) < 0 ? say_errno(path) : add_level(e, &at, path);
	close(at.to);
	return result;
}

static int add_open_directory(struct etc *e, const struct level *at, int fd, const char *name, const char *path)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return say_errno(path);
	if (!is_shown(&st))
		return 0;
	switch (etc_scan(fd, at->depth + 1, at->left)) {
	case ETC_OPEN:
		return add_bound(e, at, fd, path);
	case ETC_PARTLY:
		return add_anew(e, at, fd, name, path);
	case ETC_TOO_MUCH:
		break;
	}
	return leave_out(path, "more names or levels than are looked at");
}

static int add_directory(struct etc *e, const struct level *at, const char *name, const char *path)
{
	int fd = openat(at->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return is_gone(errno) ? 0 : say_errno(path);
	int result = add_open_directory(e, at, fd, name, path);
	close(fd);
	return result;
}

static int add_entry(struct etc *e, const struct level *at, const char *name, const char *path)
{
	struct stat st;
	if (has_hidden(e->room, path))
		return 0;
	if (fstatat(at->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_gone(errno) ? 0 : say_errno(path);
	if (!is_shown(&st))
		return 0;
	if (S_ISLNK(st.st_mode))
		return add_link(at, name) < 0 ? say_errno(path) : 0;
	return S_ISDIR(st.st_mode) ? add_directory(e, at, name, path) : add_file(e, at, name, path);
}

/* In /etc too many names refuse the room, and below it they are left out. */
static int count_name(struct level *at, const char *path)
{
	if (at->depth > 0)
		return *at->left > 0 ? (--*at->left, 0) : 1;
	*at->left = LIMIT_ROOM_ETC_WALK;
	if (++at->n <= LIMIT_ROOM_ETC)
		return 0;
	say("%s has more than %d names", path, LIMIT_ROOM_ETC);
	return -1;
}

static int add_names(struct etc *e, struct level *at, DIR *list, const char *path)
{
	for (struct dirent *entry = next_name(list); entry; entry = next_name(list)) {
		char name[LONGEST];
		if (is_dots(entry->d_name) || (at->depth == 0 && is_own(entry->d_name)))
			continue;
		int counted = count_name(at, path);
		if (counted > 0) {
			say("%s: more names than are looked at: not all of them are in the room", path);
			return 0;
		}
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (counted < 0 || add_entry(e, at, entry->d_name, name) < 0)
			return -1;
	}
	return errno == 0 ? 0 : say_errno(path);
}

static int add_level(struct etc *e, struct level *at, const char *path)
{
	int copy = openat(at->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	if (!list) {
		say_errno(path);
		if (copy >= 0)
			close(copy);
		return -1;
	}
	int result = add_names(e, at, list, path);
	closedir(list);
	return result;
}

static int add_machine(struct etc *e, int to, const char *root)
{
	size_t left = 0;
	struct level top = {.from = plain_open_below(root, MACHINE_ETC), .to = to, .left = &left};
	if (top.from < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : say_errno(MACHINE_ETC);
	int result = add_level(e, &top, MACHINE_ETC);
	close(top.from);
	return result;
}

int etc_plan(struct plan *plan, const struct room *room)
{
	const struct memory small = {LIMIT_ROOM_SMALL, LIMIT_ROOM_FEW_INODES};
	struct etc e = {.room = room, .plan = plan};
	int to = mount_tree_tmpfs(small, "0755", 0);
	if (plan_tree(plan, to, MACHINE_ETC) < 0 || put_own(to, room) < 0)
		return -1;
	return add_machine(&e, to, room->root ? room->root : "/");
}

int etc_close(void)
{
	return mount_tree_restrict_path(MACHINE_ETC, MOUNT_ATTR_RDONLY) < 0 ? say_errno(MACHINE_ETC) : 0;
}
