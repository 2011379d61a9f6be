/* A file of random bytes, neither more nor fewer than asked for. */
#include "proxy/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/ca.h"

#define PATH_ROOM 4200

static bool read_key(const char *path, unsigned char *key, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	unsigned char more;
	bool ok = read(fd, key, len) == (ssize_t)len && read(fd, &more, 1) == 0;
	if (!ok)
		errno = EINVAL;
	close(fd);
	return ok;
}

static bool make_key(const char *path, unsigned char *key, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = RAND_bytes(key, (int)len) == 1 && write(fd, key, len) == (ssize_t)len && fsync(fd) == 0;
	close(fd);
	if (!ok)
		unlink(path);
	return ok;
}

bool key_file_open(const char *dir, const char *name, unsigned char *key, size_t len)
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	if (read_key(path, key, len))
		return true;
	if (errno == ENOENT && ca_make_dirs(dir) && make_key(path, key, len))
		return true;
	if (errno == EEXIST && read_key(path, key, len)) /* another program was faster */
		return true;
	fprintf(stderr, "cage-proxy: %s: can't be read or made: %s\n", path,
		errno == EINVAL ? "it does not hold a key" : strerror(errno));
	return false;
}
