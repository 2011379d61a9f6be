/* An agent that may change a directory can put a link in the place of what is shown to the next one. So a link counts only
 * if nobody but root can have put it there. */
#include "orchestrator/shown_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/own_trace.h"

/* Its own, and it can't be moved here from elsewhere: the directory is root's too. */
static bool is_roots(const char *link)
{
	struct stat st, above;
	char dir[LIMIT_WORKSPACE_PATH];
	snprintf(dir, sizeof(dir), "%s", link);
	char *slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	if (lstat(link, &st) != 0 || lstat(dir, &above) != 0 || st.st_uid != 0 || above.st_uid != 0)
		return false;
	return (above.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (above.st_mode & S_ISVTX);
}

static bool refuse_link(const char *option, const char *name, const char *link)
{
	char target[LIMIT_WORKSPACE_PATH];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	say("%s %s: %s is a link to %s; name that if it is meant", option, name, link, target);
	return false;
}

/* way: the links, and then where they lead. */
static bool check_way(const char *option, const char *name, const struct words *way)
{
	for (size_t i = 0; i + 1 < way->n; i++)
		if (!is_roots(way->list[i]))
			return refuse_link(option, name, way->list[i]);
	return true;
}

static bool is_there(const char *option, const char *name, const char *path, size_t room)
{
	struct stat st;
	if (name[0] && strlen(path) < room && lstat(path, &st) == 0)
		return true;
	say("%s %s: %s", option, name, strerror(!name[0] ? ENOENT : strlen(path) < room ? errno : ENAMETOOLONG));
	return false;
}

enum shown_way shown_source(const char *option, const char *name, char *out, size_t room)
{
	struct words way = {0};
	enum shown_way how = SHOWN_REFUSED;
	if (own_trace(name, &way) && check_way(option, name, &way) &&
	    is_there(option, name, way.list[way.n - 1], room)) {
		snprintf(out, room, "%s", way.list[way.n - 1]);
		how = way.n == 1 ? SHOWN_PLAINLY : SHOWN_BY_LINK;
	}
	words_free(&way);
	return how;
}
