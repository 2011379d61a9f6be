/* A file of CHAIN_KEY random bytes. */
#include "proxy/fingerprint_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <unistd.h>

#include "proxy/ca.h"

#define PATH_ROOM 4200

static bool read_key(const char *path, unsigned char key[CHAIN_KEY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	unsigned char more;
	bool ok = read(fd, key, CHAIN_KEY) == CHAIN_KEY && read(fd, &more, 1) == 0;
	if (!ok)
		errno = EINVAL;
	close(fd);
	return ok;
}

static bool make_key(const char *path, unsigned char key[CHAIN_KEY])
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = RAND_bytes(key, CHAIN_KEY) == 1 && write(fd, key, CHAIN_KEY) == CHAIN_KEY && fsync(fd) == 0;
	close(fd);
	if (!ok)
		unlink(path);
	return ok;
}

bool fingerprint_key_open(const char *dir, unsigned char key[CHAIN_KEY])
{
	char path[PATH_ROOM];
	if (snprintf(path, sizeof(path), "%s/fingerprint.key", dir) >= (int)sizeof(path))
		return false;
	if (read_key(path, key))
		return true;
	if (errno == ENOENT && ca_make_dirs(dir) && make_key(path, key))
		return true;
	if (errno == EEXIST && read_key(path, key)) /* another program was faster */
		return true;
	fprintf(stderr, "cage-proxy: %s: can't be read or made: %s\n", path,
		errno == EINVAL ? "it does not hold a key" : strerror(errno));
	return false;
}
