/* A walk that ends at the first thing that is not everybody's. */
#include "orchestrator/gate/etc_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/next_name.h"

bool etc_is_open(const struct stat *st)
{
	const mode_t needed = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
	return S_ISLNK(st->st_mode) || (st->st_mode & needed) == needed;
}

/* What can't be looked at is not everybody's; what is gone is nobody's. */
static enum etc_seen scan_name(int dir, const struct dirent *entry, unsigned depth, size_t *left)
{
	struct stat st;
	if (entry->d_type == DT_LNK)
		return ETC_OPEN;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? ETC_OPEN : ETC_PARTLY;
	if (!etc_is_open(&st))
		return ETC_PARTLY;
	if (!S_ISDIR(st.st_mode))
		return ETC_OPEN;
	int below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return ETC_PARTLY;
	enum etc_seen seen = etc_scan(below, depth + 1, left);
	close(below);
	return seen;
}

static enum etc_seen scan_all(DIR *list, unsigned depth, size_t *left)
{
	enum etc_seen seen = ETC_OPEN;
	for (struct dirent *entry = next_name(list); entry && seen == ETC_OPEN; entry = next_name(list)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (*left == 0)
			return ETC_TOO_MUCH;
		--*left;
		seen = scan_name(dirfd(list), entry, depth, left);
		errno = 0;
	}
	return seen == ETC_OPEN && errno != 0 ? ETC_PARTLY : seen;
}

enum etc_seen etc_scan(int dir, unsigned depth, size_t *left)
{
	if (depth > LIMIT_ROOM_ETC_DEPTH)
		return ETC_TOO_MUCH;
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	if (!list) {
		if (copy >= 0)
			close(copy);
		return ETC_PARTLY;
	}
	enum etc_seen seen = scan_all(list, depth, left);
	closedir(list);
	return seen;
}
