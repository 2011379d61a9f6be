/* Read from /proc/net/unix: lines of numbers with the path at the end, as it was when the socket was bound. What belongs to
 * another network is not in it. */
#include "orchestrator/gate/path_sockets.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/machine.h"
#include "orchestrator/gate/proc.h"
#include "orchestrator/gate/room.h"
#include "orchestrator/gate/say.h"

enum { FIELD_FLAGS = 3, FIELD_TYPE = 4, FIELD_PATH = 7, FLAG_LISTENS = 0x10000, TYPE_DATAGRAM = 2 };

/* One that others can begin to talk to; out is what each has found. 0 to go on. */
typedef int (*take_path)(const struct room *room, const char *path, struct path_sockets *out);

/* "Num RefCount Protocol Flags Type St Inode Path". Ends of connections have the path of their listener too. NULL for what
 * can't be called, or by no path. */
static char *called_by(char *line)
{
	unsigned long flags = 0, type = 0;
	for (int field = 0; field < FIELD_PATH; field++) {
		if (field == FIELD_FLAGS)
			flags = strtoul(line, NULL, 16);
		if (field == FIELD_TYPE)
			type = strtoul(line, NULL, 16);
		line += strcspn(line, " \n");
		line += field == FIELD_PATH - 1 ? (*line == ' ') : strspn(line, " ");
	}
	line[strcspn(line, "\n")] = '\0';
	return *line && *line != '@' && ((flags & FLAG_LISTENS) || type == TYPE_DATAGRAM) ? line : NULL;
}

static int read_table(const char *name, const struct room *room, take_path take, struct path_sockets *out)
{
	char *line = NULL;
	size_t size = 0;
	int result = 0;
	FILE *table = fopen(name, "re");
	if (!table)
		return say_errno(name);
	while (result == 0 && getline(&line, &size, table) > 0) {
		const char *path = called_by(line);
		if (path)
			result = take(room, path, out);
	}
	free(line);
	fclose(table);
	return result;
}

static int add(struct path_sockets *out, const char *path)
{
	if (out->n == LIMIT_ROOM_SOCKETS) {
		say("more than %d sockets of others would be in the room", LIMIT_ROOM_SOCKETS);
		return -1;
	}
	out->paths[out->n] = strdup(path);
	return out->paths[out->n++] ? 0 : say_errno(path);
}

/* ---- in a room of its own ---- */

/* What real is called in the room if it lies below tree, which is shown as shown_as; else NULL. */
static const char *name_in_room(const char *real, const char *tree, const char *shown_as, char out[PATH_MAX])
{
	char at[PATH_MAX];
	if (!realpath(tree, at))
		return NULL;
	const size_t len = strcmp(at, "/") == 0 ? 0 : strlen(at);
	if (strncmp(real, at, len) != 0 || real[len] != '/')
		return NULL;
	return snprintf(out, PATH_MAX, "%s%s", shown_as, real + len) < PATH_MAX ? out : NULL;
}

static const char *find_name(const struct room *room, const char *real, char out[PATH_MAX])
{
	if (room->root)
		return name_in_room(real, room->root, "", out);
	const char *name = NULL;
	for (size_t i = 0; machine_trees[i] && !name; i++)
		name = name_in_room(real, machine_trees[i], machine_trees[i], out);
	return name;
}

/* A path that leads nowhere is one of another container. */
static int take_shown(const struct room *room, const char *path, struct path_sockets *out)
{
	char real[PATH_MAX], name[PATH_MAX];
	if (path[0] != '/' || !realpath(path, real) || !find_name(room, real, name) ||
	    room_bound(room, name) != BOUND_NOT)
		return 0;
	return add(out, name);
}

int path_sockets_find(const struct room *room, struct path_sockets *out)
{
	out->n = 0;
	return read_table("/proc/net/unix", room, take_shown, out);
}

int path_sockets_hide(const struct path_sockets *sockets)
{
	struct stat st;
	for (size_t i = 0; i < sockets->n; i++)
		if (stat(sockets->paths[i], &st) == 0 && S_ISSOCK(st.st_mode) && proc_hide(sockets->paths[i]) < 0)
			return -1;
	return 0;
}

void path_sockets_free(struct path_sockets *sockets)
{
	while (sockets->n > 0)
		free(sockets->paths[--sockets->n]);
}

/* ---- where the container is the room ---- */

/* A path that is not here is one of another container, which has no meaning in this one; or of a socket that was renamed since,
 * which can't be told from it. */
static bool can_connect(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* One that was bound by a name that is not absolute can be anywhere. */
static int refuse_reachable(const struct room *room, const char *path, struct path_sockets *out)
{
	(void)out;
	if (path[0] == '/' && (room_bound(room, path) != BOUND_NOT || !can_connect(path)))
		return 0;
	say("%s: the agent could connect to this socket, and can't be kept from it on this host", path);
	return -1;
}

int path_sockets_check(const struct room *room)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/net/unix", (int)getppid());
	return read_table(name, room, refuse_reachable, NULL);
}
