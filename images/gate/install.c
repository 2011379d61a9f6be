/* cage-install, the only thing that the gate's image does: it brings the programs that lie beside it into the directory
 * that it is given, which is a volume that the agent's container has too. The image has no shell and no cp. Each program
 * appears whole or not at all, since a container that starts early may already look for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/usage.h"

#define PROGRAMS "/usr/libexec/cage"

static const char usage[] =
	"usage: cage-install DIR\n"
	"\n"
	"Copies the programs of this image (" PROGRAMS ") into DIR, for a container that shares it.\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage.\n";

static int failed(const char *what, const char *name)
{
	fprintf(stderr, "cage-install: can't %s %s: %s\n", what, name, strerror(errno));
	return -1;
}

static int copy_bytes(int from, int to)
{
	ssize_t n;

	do {
		n = sendfile(to, from, NULL, 1 << 20);
	} while (n > 0);
	return n < 0 ? -1 : 0;
}

/* What an earlier attempt left is not written through, whatever it is. */
static int make_new(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
		return -1;
	return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int fill(int from, int dir, const char *temporary, const char *name)
{
	int to = make_new(dir, temporary);
	int result = -1;

	if (to < 0)
		return failed("make", temporary);
	if (copy_bytes(from, to) != 0 || fchmod(to, 0555) != 0 || fsync(to) != 0)
		failed("write", temporary);
	else if (renameat(dir, temporary, dir, name) != 0)
		failed("name", name);
	else
		result = 0;
	close(to);
	return result;
}

static int install_one(int source, int dir, const char *name)
{
	char temporary[NAME_MAX + 8];
	int from = openat(source, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int result;

	if (from < 0)
		return failed("read", name);
	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	result = fill(from, dir, temporary, name);
	close(from);
	return result;
}

static int install_all(DIR *programs, int dir)
{
	struct dirent *entry;
	int result = 0;

	while ((entry = readdir(programs)))
		if (entry->d_name[0] != '.' && install_one(dirfd(programs), dir, entry->d_name) != 0)
			result = -1;
	return result;
}

int main(int argc, char **argv)
{
	DIR *programs;
	int dir;
	const int asked = usage_asked(argc, argv, "cage-install", usage);
	if (asked >= 0)
		return asked;
	if (argc != 2 || argv[1][0] == '-') {
		fputs(usage, stderr);
		return 2;
	}
	programs = opendir(PROGRAMS);
	if (!programs)
		return failed("open", PROGRAMS) != 0;
	dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return failed("open", argv[1]) != 0;
	return install_all(programs, dir) != 0;
}
