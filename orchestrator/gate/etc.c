/* Directories are bound one by one, links are made anew, and files are copied: names are asked for at the gate's resolver,
 * and the users of the machine are nobody's business. */
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
#include "orchestrator/gate/machine.h"
#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/next_name.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

/* The machine's, and the room's that is being made of it. */
struct etc {
	const struct room *room;
	struct plan *plan;
	int from, to;
	size_t copied; /* bytes, in whole pages */
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
	char hosts[512], name[LIMIT_LABEL + 2];
	snprintf(hosts, sizeof(hosts), "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		 hostname);
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
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[strlen(name) - 1] == '-';
}

static bool has_hidden(const struct room *room, const char *path)
{
	for (size_t i = 0; i < room->n_fittings; i++)
		if (room->fittings[i].kind == FITTING_HIDE && path_is_at_or_below(room->fittings[i].path, path))
			return true;
	return false;
}

static int add_link(const struct etc *e, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(e->from, name, text, sizeof(text) - 1);
	if (n < 0)
		return -1;
	text[n] = '\0';
	return symlinkat(text, e->to, name);
}

static bool is_large(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > (off_t)LIMIT_ROOM_ETC_FILE;
}

/* What a file that is not large takes in memory. */
static size_t pages_of(const struct stat *st)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return ((size_t)st->st_size + page - 1) / page * page;
}

static bool is_bound(const struct etc *e, const struct stat *st)
{
	return S_ISDIR(st->st_mode) || is_large(st) ||
	       (S_ISREG(st->st_mode) && e->copied + pages_of(st) > LIMIT_ROOM_ETC_ALL);
}

/* A file that not everybody may read is none of the agent's, whoever runs the gate. */
static bool is_shown(const struct stat *st)
{
	return S_ISLNK(st->st_mode) || S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && (st->st_mode & S_IROTH));
}

/* What was looked at by its name may be another file by now. */
static int add_copy(struct etc *e, const char *name)
{
	struct stat st;
	int from = openat(e->from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return errno == EACCES || errno == ENOENT || errno == ELOOP ? 0 : -1;
	int result = fstat(from, &st);
	if (result == 0 && is_shown(&st) && S_ISREG(st.st_mode) && !is_large(&st)) {
		e->copied += pages_of(&st);
		result = copy_file(from, e->to, name, st.st_mode & 0755);
	}
	int error = errno;
	close(from);
	errno = error;
	return result;
}

static int add_entry(struct etc *e, const char *name)
{
	struct stat st;
	char path[sizeof(MACHINE_ETC) + 1 + NAME_MAX];
	snprintf(path, sizeof(path), MACHINE_ETC "/%s", name);
	if (has_hidden(e->room, path))
		return 0;
	if (fstatat(e->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : say_errno(path);
	if (!is_shown(&st))
		return 0;
	if (is_bound(e, &st))
		return plan_read_only(e->plan, mount_tree_clone_at(e->from, name), path);
	int result = S_ISLNK(st.st_mode) ? add_link(e, name) : add_copy(e, name);
	return result < 0 ? say_errno(path) : 0;
}

static int add_all(struct etc *e, DIR *list)
{
	size_t n = 0;
	for (struct dirent *entry = next_name(list); entry; entry = next_name(list)) {
		if (is_own(entry->d_name))
			continue;
		if (++n > LIMIT_ROOM_ETC) {
			say(MACHINE_ETC " has more than %d names", LIMIT_ROOM_ETC);
			return -1;
		}
		if (add_entry(e, entry->d_name) < 0)
			return -1;
	}
	return errno == 0 ? 0 : say_errno(MACHINE_ETC);
}

static int add_machine(struct etc *e, const char *root)
{
	e->from = plain_open_below(root, MACHINE_ETC);
	DIR *list = e->from < 0 ? NULL : fdopendir(e->from);
	if (!list) {
		int error = errno;
		if (e->from >= 0)
			close(e->from);
		errno = error;
		return errno == ENOENT || errno == ENOTDIR ? 0 : say_errno(MACHINE_ETC);
	}
	int result = add_all(e, list);
	closedir(list);
	return result;
}

int etc_plan(struct plan *plan, const struct room *room)
{
	const struct memory small = {LIMIT_ROOM_SMALL, LIMIT_ROOM_FEW_INODES};
	struct etc e = {.room = room, .plan = plan, .to = mount_tree_tmpfs(small, "0755", 0)};
	if (plan_tree(plan, e.to, MACHINE_ETC) < 0 || put_own(e.to, room) < 0)
		return -1;
	return add_machine(&e, room->root ? room->root : "/");
}

int etc_close(void)
{
	return mount_tree_restrict_path(MACHINE_ETC, MOUNT_ATTR_RDONLY) < 0 ? say_errno(MACHINE_ETC) : 0;
}
