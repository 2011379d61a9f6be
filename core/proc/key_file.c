/* A file of random bytes, neither more nor fewer than asked for. */
#include "core/proc/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"

#define PATH_ROOM 4200 /* a directory of 4096 and a name */

bool key_dir_path(const char *given, char *out, size_t room)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int n;
	if (given)
		n = snprintf(out, room, "%s", given);
	else if (geteuid() == 0)
		n = snprintf(out, room, "/var/lib/cage");
	else if (state && state[0] == '/')
		n = snprintf(out, room, "%s/cage", state);
	else if (home && home[0] == '/')
		n = snprintf(out, room, "%s/.local/state/cage", home);
	else
		return false;
	return n > 0 && (size_t)n < room;
}

bool key_dir_make(const char *dir)
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return false;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return false;
		*p = '/';
	}
	return mkdir(path, 0755) == 0 || errno == EEXIST;
}

static bool read_key(const char *path, int flags, unsigned char *key, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return false;
	unsigned char more;
	bool ok = read(fd, key, len) == (ssize_t)len && read(fd, &more, 1) == 0;
	if (!ok)
		errno = EINVAL;
	close(fd);
	return ok;
}

/* It gets its name once it is whole: another program may look for it at the same time. */
static bool make_key(const char *path, unsigned char *key, size_t len)
{
	char tmp[PATH_ROOM + 16];
	snprintf(tmp, sizeof(tmp), "%s.%d", path, (int)getpid());
	unlink(tmp);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = RAND_bytes(key, (int)len) == 1 && write(fd, key, len) == (ssize_t)len && fsync(fd) == 0;
	close(fd);
	ok = ok && link(tmp, path) == 0;
	int error = errno;
	unlink(tmp);
	errno = error;
	return ok;
}

bool key_file_open(const char *dir, const char *name, unsigned char *key, size_t len)
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	if (read_key(path, O_NOFOLLOW, key, len))
		return true;
	if (errno == ENOENT && key_dir_make(dir) && make_key(path, key, len))
		return true;
	if (errno == EEXIST && read_key(path, O_NOFOLLOW, key, len)) /* another program was faster */
		return true;
	say("%s: can't be read or made: %s", path, errno == EINVAL ? "it does not hold a key" : strerror(errno));
	return false;
}

bool key_file_read(const char *dir, const char *name, unsigned char *key, size_t len)
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && read_key(path, 0, key, len))
		return true;
	say("%s/%s: can't be read: %s", dir, name, errno == EINVAL ? "it does not hold a key" : strerror(errno));
	return false;
}

bool key_file_get(const char *keys, const char *ca_dir, const char *name, unsigned char *key, size_t len)
{
	return keys ? key_file_read(keys, name, key, len) : key_file_open(ca_dir, name, key, len);
}
