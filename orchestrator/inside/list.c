/* Names, kinds and sizes of what a directory has in it. */
#include "orchestrator/inside/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/inside/beneath.h"

static char letter_of(mode_t mode)
{
	return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

static bool write_entry(int to, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true; /* it is gone */
	bool is_file = S_ISREG(st.st_mode);
	return dprintf(to, "%c %lld %s", letter_of(st.st_mode), is_file ? (long long)st.st_size : 0, name) > 0 &&
	       write(to, "", 1) == 1;
}

static bool is_listed(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int list_make(int root, const char *path)
{
	int fd = beneath_open_dir(root, path), to = memfd_create("list", MFD_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	bool ok = list && to >= 0;
	size_t n = 0;
	for (struct dirent *e = ok ? readdir(list) : NULL; e && ok; e = readdir(list))
		if (is_listed(e->d_name))
			ok = n++ < LIMIT_INSIDE_LIST ? write_entry(to, fd, e->d_name) : (errno = E2BIG, false);
	int why = errno;
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	if (ok && lseek(to, 0, SEEK_SET) == 0)
		return to;
	if (to >= 0)
		close(to);
	errno = why;
	return -1;
}
