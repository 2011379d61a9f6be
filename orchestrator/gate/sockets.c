/* Read from /proc/net/unix: lines of numbers with the path at the end. */
#include "orchestrator/gate/sockets.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

static bool is_bound(const struct room *room, const char *path)
{
	for (size_t i = 0; i < room->n_fittings; i++) {
		const struct fitting *f = &room->fittings[i];
		const size_t len = f->source ? strlen(f->path) : 0;
		if (f->source && strncmp(path, f->path, len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return true;
	}
	return false;
}

/* The path may be one of another container, which has no meaning here. */
static bool can_connect(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int check_line(const struct room *room, char *line)
{
	char *path = strstr(line, " /");
	if (!path)
		return 0;
	path++;
	path[strcspn(path, "\n")] = '\0';
	if (is_bound(room, path) || !can_connect(path))
		return 0;
	say("%s: the agent could connect to this socket, and can't be kept from it on this host", path);
	return -1;
}

int sockets_check(const struct room *room)
{
	char name[64], *line = NULL;
	size_t size = 0;
	int result = 0;
	snprintf(name, sizeof(name), "/proc/%d/net/unix", (int)getppid());
	FILE *table = fopen(name, "re");
	if (!table)
		return say_errno(name);
	while (result == 0 && getline(&line, &size, table) > 0)
		result = check_line(room, line);
	free(line);
	fclose(table);
	return result;
}
