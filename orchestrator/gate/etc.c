/* Names are asked for at the gate's resolver, and the users of the machine are nobody's business. */
#include "orchestrator/gate/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/plan.h"
#include "orchestrator/gate/say.h"

#define SCRATCH "/.file"

static int write_scratch(const char *text)
{
	const size_t len = strlen(text);
	int fd = open(SCRATCH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	int result = write(fd, text, len) == (ssize_t)len && fchmod(fd, 0644) == 0 ? 0 : -1;
	close(fd);
	return result;
}

static int file_tree(const char *text)
{
	if (write_scratch(text) < 0)
		return -1;
	int tree = mount_tree_clone(SCRATCH);
	if (tree < 0)
		return -1;
	return mount_tree_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) <
			       0
		       ? -1
		       : tree;
}

/* A link such as that of resolv.conf into /run leads to nothing in the room: then what it leads to is made. A file
 * that is not there at all has defaults that suit. */
static int find_place(const char *path, char place[PATH_MAX])
{
	struct stat st;
	char text[PATH_MAX - 16];
	snprintf(place, PATH_MAX, "%s", path);
	if (stat(path, &st) == 0)
		return 1;
	ssize_t n = readlink(path, text, sizeof(text) - 1);
	if (n < 0)
		return errno == ENOENT ? 0 : -1;
	text[n] = '\0';
	snprintf(place, PATH_MAX, "%s%s", text[0] == '/' ? "" : "/etc/", text);
	return plan_make_path(place, 0) < 0 ? -1 : 1;
}

static int put_file(const char *path, const char *text)
{
	char place[PATH_MAX];
	int found = find_place(path, place);
	if (found == 0)
		return 0;
	int tree = found < 0 ? -1 : file_tree(text);
	if (tree < 0)
		return say_errno(path);
	int result = mount_tree_attach(tree, place) < 0 || unlink(SCRATCH) < 0 ? say_errno(path) : 0;
	close(tree);
	return result;
}

int etc_make(const struct room *room)
{
	const char *hostname = room->hostname ? room->hostname : "cage";
	char hosts[512], passwd[PATH_MAX + 512], group[256], name[LIMIT_LABEL + 2];
	snprintf(hosts, sizeof(hosts), "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		 hostname);
	int n = snprintf(passwd, sizeof(passwd),
			 "root:x:0:0:root:/:/bin/false\nagent:x:%u:%u:agent:%s:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/:/bin/false\n",
			 room->uid, room->uid, room_home(room));
	if (n >= (int)sizeof(passwd)) {
		errno = ENAMETOOLONG;
		return say_errno("HOME");
	}
	snprintf(group, sizeof(group), "root:x:0:\nagent:x:%u:\nnogroup:x:65534:\n", room->uid);
	snprintf(name, sizeof(name), "%s\n", hostname);
	if (put_file("/etc/resolv.conf", "nameserver 127.0.0.1\n") < 0 || put_file("/etc/hosts", hosts) < 0)
		return -1;
	return put_file("/etc/passwd", passwd) < 0 || put_file("/etc/group", group) < 0 ||
			       put_file("/etc/hostname", name) < 0
		       ? -1
		       : 0;
}
