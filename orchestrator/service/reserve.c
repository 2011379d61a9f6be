/* A file of zeros. */
#include "orchestrator/service/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/say.h"

static bool has_free(const char *path, uint64_t bytes)
{
	char dir[BACKEND_PATH];
	struct statvfs st;
	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	if (statvfs(dir, &st) != 0)
		return false;
	bool has_names = st.f_files == 0 || st.f_favail >= LIMIT_SERVE_FREE_NAMES;
	return has_names && (uint64_t)st.f_bavail * st.f_frsize >= bytes;
}

/* Blocks, and not only a size. */
static bool hold(struct reserve *r)
{
	int fd = open(r->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && posix_fallocate(fd, 0, LIMIT_SERVE_RESERVE) == 0;
	if (fd >= 0)
		close(fd);
	if (!ok)
		unlink(r->path);
	r->state = ok ? RESERVE_HELD : RESERVE_GIVEN;
	return ok;
}

void reserve_open(struct reserve *r, const char *state)
{
	snprintf(r->path, sizeof(r->path), "%s/reserve", state);
	if (!hold(r))
		say("%s: the disk is full: no sandbox is made or started until there is room", state);
}

bool reserve_give(struct reserve *r)
{
	if (r->state == RESERVE_GIVEN)
		return false;
	r->state = RESERVE_GIVEN;
	say("the disk is full: no sandbox is made or started until there is room");
	return unlink(r->path) == 0;
}

void reserve_take(struct reserve *r)
{
	if (r->state == RESERVE_GIVEN && has_free(r->path, LIMIT_SERVE_RESERVE + LIMIT_SERVE_FREE) && hold(r))
		say("the disk has room again");
}

bool reserve_has_room(const struct reserve *r)
{
	return r->state == RESERVE_HELD && has_free(r->path, LIMIT_SERVE_FREE);
}
