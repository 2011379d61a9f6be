/* What a configuration of git says that git shall run or read: the directory of hooks, files that are included, and whatever a
 * value names by a path, since most values of git that are paths are those of programs. Any of them may be an agent's: it may
 * name everything, and itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "orchestrator/git_config.h"
#include "orchestrator/obeyed_private.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* One configuration. */
struct config {
	const struct git_scope *scope;
	const char *path;
	int depth; /* of what includes it */
};

/* ---- files ---- */

/* The one device that has nothing in it. */
static bool is_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

/* Of a device, opening it may do something already: first it is looked at. -1 with errno. */
static int open_file(const char *path)
{
	char again[32];
	struct stat st;
	int fd = -1, seen = open(path, O_PATH | O_CLOEXEC);
	if (seen < 0)
		return -1;
	errno = EINVAL;
	if (fstat(seen, &st) == 0 && is_file(&st)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", seen);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	int error = errno;
	close(seen);
	errno = error;
	return fd;
}

/* All of it; -1: there is none. What is there and can't be read whole is not known. */
static ssize_t read_file(struct obeyed_search *s, const char *path, char *text, size_t room, enum git_closed closed)
{
	size_t len = 0;
	ssize_t n = 0;
	int fd = obeyed_goes_on(s) ? open_file(path) : -1;
	if (fd < 0) {
		const bool is_none =
			errno == ENOENT || errno == ENOTDIR || (errno == EACCES && closed == CLOSED_IS_NONE);
		s->out->failed = s->out->failed || !is_none;
		return -1;
	}
	while (len < room && (n = read(fd, text + len, room - len)) > 0)
		len += (size_t)n;
	s->out->failed = ++s->n_files > LIMIT_GIT_FILES || n < 0 || len == room;
	close(fd);
	return (ssize_t)len;
}

/* Of a path that begins at a directory. False: it begins elsewhere, or is too long, which is not known then. */
static bool join(const struct git_scope *scope, const char *from, struct slice path, char out[LIMIT_WORKSPACE_PATH])
{
	int n = 0;
	if (slice_starts(path, SLICE("~/")) && scope->home[0])
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%s/%.*s", scope->home, SLICE_FMT(slice_from(path, 2)));
	else if (slice_starts(path, SLICE("~")) || slice_starts(path, SLICE("%(prefix)")) || path.len == 0)
		return false;
	else if (slice_starts(path, SLICE("/")))
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%.*s", SLICE_FMT(path));
	else
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%s/%.*s", from, SLICE_FMT(path));
	if (n >= LIMIT_WORKSPACE_PATH)
		scope->search->out->failed = true;
	return n < LIMIT_WORKSPACE_PATH;
}

bool git_pointer_read(const struct git_scope *scope, const char *dir, const char *name, struct slice before,
		      char to[LIMIT_WORKSPACE_PATH])
{
	char path[LIMIT_WORKSPACE_PATH + 16], text[LIMIT_WORKSPACE_PATH];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ssize_t n = read_file(scope->search, path, text, sizeof(text), CLOSED_IS_UNKNOWN);
	struct slice line = slice_trim(slice_of(text, n > 0 ? (size_t)n : 0));
	while (slice_ends(line, SLICE("\n")) || slice_ends(line, SLICE("\r")))
		line = slice_head(line, line.len - 1);
	return slice_starts(line, before) && join(scope, dir, slice_trim(slice_from(line, before.len)), to);
}

/* ---- settings ---- */

/* Until there is a repository it is not known where a path begins that is not absolute. */
void git_path_obey(const struct git_scope *scope, struct slice path)
{
	char name[LIMIT_WORKSPACE_PATH];
	struct obeyed_search *s = scope->search;
	const bool is_absolute = slice_starts(path, SLICE("/")) || slice_starts(path, SLICE("~"));
	if (is_absolute || scope->top) {
		if (join(scope, scope->top, path, name))
			obeyed_add(s, name);
	} else if (++s->n_looks > LIMIT_OBEYED_LOOKS) {
		s->out->failed = true;
	} else {
		words_add(&s->everywhere, "%.*s", SLICE_FMT(path));
	}
}

/* Each path in a command. */
static void add_words(const struct git_scope *scope, struct slice command)
{
	static const char between[] = " \t\n\b\"'`;|&()<>{}=!$,:";
	while (command.len > 0) {
		size_t n = 0;
		while (n < command.len && !memchr(between, command.ptr[n], sizeof(between) - 1))
			n++;
		struct slice word = slice_head(command, n);
		if (slice_find(word, '/') < word.len)
			git_path_obey(scope, word);
		command = slice_from(command, n + 1);
	}
}

static void read_config(const struct config *c, enum git_closed closed);

static void include(const struct config *c, struct slice value)
{
	char from[LIMIT_WORKSPACE_PATH], name[LIMIT_WORKSPACE_PATH];
	const struct config included = {.scope = c->scope, .path = name, .depth = c->depth + 1};
	const size_t slash = slice_rfind(slice_str(c->path), '/');
	snprintf(from, sizeof(from), "%.*s", (int)slash, c->path);
	if (!join(c->scope, from, value, name))
		return;
	obeyed_add(c->scope->search, name);
	if (c->depth == LIMIT_GIT_INCLUDES)
		c->scope->search->out->failed = true;
	else
		read_config(&included, CLOSED_IS_UNKNOWN);
}

/* Conditions of an include are taken for true. */
static bool take(void *arg, const struct git_setting *s)
{
	static const struct slice includes[] = {WORD("include"), WORD("includeif")};
	static const struct slice files[] = {WORD("hookspath"), WORD("attributesfile")};
	/* What is run only when it is asked for, and what names repositories, branches and people. */
	static const struct slice plain_sections[] = {WORD("alias"), WORD("safe"),  WORD("maintenance"),
						      WORD("gui"),   WORD("url"),   WORD("branch"),
						      WORD("user"),  WORD("scalar")};
	static const struct slice plain_keys[] = {WORD("url"),  WORD("pushurl"),  WORD("fetch"),
						  WORD("push"), WORD("worktree"), WORD("excludesfile")};
	const struct config *c = arg;
	if (slice_is_one_of(s->section, includes, N(includes)) && slice_ieq(s->key, SLICE("path")))
		include(c, s->value);
	else if (slice_is_one_of(s->key, files, N(files)))
		git_path_obey(c->scope, s->value);
	else if (!slice_is_one_of(s->section, plain_sections, N(plain_sections)) &&
		 !slice_is_one_of(s->key, plain_keys, N(plain_keys)))
		add_words(c->scope, s->value);
	return obeyed_goes_on(c->scope->search);
}

static void read_config(const struct config *c, enum git_closed closed)
{
	struct obeyed_search *s = c->scope->search;
	struct config read = *c;
	char *text = malloc(LIMIT_GIT_CONFIG);
	ssize_t n = text ? read_file(s, c->path, text, LIMIT_GIT_CONFIG, closed) : -1;
	if (!text || (n > 0 && !s->out->failed && !git_config_parse(slice_of(text, (size_t)n), take, &read)))
		s->out->failed = true;
	free(text);
}

void git_config_obey(const struct git_scope *scope, const char *path, enum git_closed closed)
{
	const struct config c = {.scope = scope, .path = path};
	obeyed_add(scope->search, path); /* it may be a link into the workspace itself */
	read_config(&c, closed);
}
