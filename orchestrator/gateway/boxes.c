/* Directories and the files in them. */
#include "orchestrator/gateway/boxes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"
#include "orchestrator/gateway/ask.h"

#define ASIDE ".aside"

#define SHUT "shut"           /* why it is */
#define NEXT_POLICY ".policy" /* before it is that */
#define CLOSED "version: 1\nname: shut-by-the-gateway\n"

static const char *const names[] = {"token", "owner", "policy.yaml", SHUT, NEXT_POLICY};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void place(const struct gateway *g, const char *id, const char *name, char out[LIMIT_GATEWAY_PATH])
{
	snprintf(out, LIMIT_GATEWAY_PATH, "%s/sandboxes/%s%s%s", g->options->state, id, name[0] ? "/" : "", name);
}

/* ---- beginning ---- */

static bool make_dir(const char *path)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return true;
	say("%s: %s", path, strerror(errno));
	return false;
}

bool boxes_open(const struct gateway *g)
{
	char path[LIMIT_GATEWAY_PATH];
	snprintf(path, sizeof(path), "%s/sandboxes", g->options->state);
	if (!make_dir(g->options->state) || !make_dir(path))
		return false;
	box_clear(g);
	return true;
}

void box_clear(const struct gateway *g)
{
	char path[LIMIT_GATEWAY_PATH];
	for (size_t i = 0; i < N_NAMES; i++) {
		place(g, ASIDE, names[i], path);
		unlink(path);
	}
	place(g, ASIDE, "", path);
	if (rmdir(path) != 0 && errno != ENOENT)
		say("%s: %s", path, strerror(errno));
}

/* ---- making ---- */

static bool write_file(const struct gateway *g, const char *id, const char *name, const char *text)
{
	char path[LIMIT_GATEWAY_PATH];
	place(g, id, name, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && write_all(fd, text, strlen(text));
	if (fd >= 0)
		ok = close(fd) == 0 && ok;
	return ok;
}

bool box_stage(const struct gateway *g, const struct box *b)
{
	char path[LIMIT_GATEWAY_PATH];
	place(g, ASIDE, "", path);
	box_clear(g);
	return mkdir(path, 0700) == 0 && write_file(g, ASIDE, "token", b->token) &&
	       write_file(g, ASIDE, "owner", b->owner) &&
	       (!b->policy || write_file(g, ASIDE, "policy.yaml", b->policy));
}

void box_staged_policy(const struct gateway *g, char out[LIMIT_GATEWAY_PATH])
{
	place(g, ASIDE, "policy.yaml", out);
}

/* ---- looking ---- */

/* -1: it can't be read, and errno says why. */
static ssize_t read_file(const struct gateway *g, const char *id, const char *name, char *out, size_t room)
{
	char path[LIMIT_GATEWAY_PATH];
	place(g, id, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const ssize_t n = fd >= 0 ? read(fd, out, room) : -1;
	const int why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	return n;
}

bool box_is_there(const struct gateway *g, const char *id)
{
	char path[LIMIT_GATEWAY_PATH];
	struct stat st;
	place(g, id, "", path);
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

enum box_whose box_owner(const struct gateway *g, const char *id, char out[LIMIT_SANDBOX + 1])
{
	const ssize_t n = read_file(g, id, "owner", out, LIMIT_SANDBOX);
	out[n > 0 ? n : 0] = '\0';
	if (n >= 0 || errno == ENOENT)
		return n > 0 ? BOX_SOMEBODYS : BOX_NOBODYS;
	say("sandbox %s: owner: %s", id, strerror(errno));
	return BOX_UNREADABLE;
}

size_t box_why_shut(const struct gateway *g, const char *id, char *out, size_t room)
{
	const ssize_t n = read_file(g, id, SHUT, out, room);
	return n > 0 ? (size_t)n : 0;
}

bool box_policy(const struct gateway *g, const char *id, char path[LIMIT_GATEWAY_PATH], char *out, size_t room,
		size_t *len)
{
	place(g, id, "policy.yaml", path);
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return false;
	const ssize_t n = read_file(g, id, "policy.yaml", out, room);
	*len = n > 0 ? (size_t)n : 0;
	return true;
}

/* ---- changing ---- */

bool box_shut(const struct gateway *g, const char *id, const char *why)
{
	char from[LIMIT_GATEWAY_PATH], to[LIMIT_GATEWAY_PATH];
	place(g, id, NEXT_POLICY, from);
	place(g, id, "policy.yaml", to);
	if (write_file(g, id, SHUT, why) && write_file(g, id, NEXT_POLICY, CLOSED) && rename(from, to) == 0)
		return true;
	say("%s: %s", to, strerror(errno));
	return false;
}

bool box_swap(const struct gateway *g, const char *id)
{
	char aside[LIMIT_GATEWAY_PATH], there[LIMIT_GATEWAY_PATH];
	place(g, ASIDE, "", aside);
	place(g, id, "", there);
	const bool has_aside = access(aside, F_OK) == 0, has_there = access(there, F_OK) == 0;
	if (has_aside && has_there)
		return renameat2(AT_FDCWD, aside, AT_FDCWD, there, RENAME_EXCHANGE) == 0;
	if (!has_aside && !has_there)
		return true;
	return has_aside ? rename(aside, there) == 0 : rename(there, aside) == 0;
}

/* ---- all of them ---- */

static int is_shown(const struct dirent *d)
{
	return box_id_is_good(slice_str(d->d_name));
}

json_t *boxes_list(const struct gateway *g, const char *owner)
{
	char path[LIMIT_GATEWAY_PATH], whose[LIMIT_SANDBOX + 1];
	struct dirent **all = NULL;
	snprintf(path, sizeof(path), "%s/sandboxes", g->options->state);
	const int n = scandir(path, &all, is_shown, alphasort);
	json_t *list = n >= 0 ? json_array() : NULL;
	bool ok = list != NULL;
	if (n < 0)
		say("%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		const char *id = all[i]->d_name;
		if (!owner || (box_owner(g, id, whose) == BOX_SOMEBODYS && strcmp(whose, owner) == 0))
			ok = ok && json_array_append_new(list, json_string(id)) == 0;
		free(all[i]);
	}
	free(all);
	if (ok)
		return list;
	json_decref(list); /* one that lacks somebody is none */
	return NULL;
}

json_t *boxes_shut(const struct gateway *g, const json_t *ids)
{
	char why[LIMIT_GATEWAY_WHY];
	json_t *out = json_object(), *id;
	size_t i;
	json_array_foreach(ids, i, id)
	{
		const size_t n = box_why_shut(g, json_string_value(id), why, sizeof(why));
		if (n > 0 && json_object_set_new(out, json_string_value(id), json_stringn(why, n)) != 0)
			json_object_set_new(out, json_string_value(id), json_string("its policy is no good"));
	}
	return out;
}

size_t boxes_count(const struct gateway *g)
{
	json_t *all = boxes_list(g, NULL);
	const size_t n = json_array_size(all);
	json_decref(all);
	return n;
}
