/* What a repository says that git shall run or read: the directory of its hooks, files that its configuration includes, and
 * whatever a value names by a path, since most values of git that are paths are those of programs. The configurations of the
 * user and of the machine count for each repository. No git is run for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/git_config.h"
#include "orchestrator/obeyed.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

struct repository {
	const char *dir; /* the workspace */
	const char *top; /* where git works, and paths begin */
	struct words *out;
};

/* One configuration. */
struct config {
	const struct repository *repository;
	const char *path;
	int depth; /* of what includes it */
};

/* ---- files ---- */

/* All of it; -1: there is none. What is there and can't be read whole is not known. */
static ssize_t read_file(const char *path, char *text, size_t room, struct words *out)
{
	struct stat st;
	size_t len = 0;
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		out->failed = out->failed || (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
		return -1; /* what we may not read, git may not either */
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		while (len < room && (n = read(fd, text + len, room - len)) > 0)
			len += (size_t)n;
	out->failed = out->failed || n < 0 || len == room;
	close(fd);
	return (ssize_t)len;
}

/* Of a path that begins at a directory. False: it begins elsewhere, or is too long, which is not known then. */
static bool join(const char *from, struct slice path, char out[LIMIT_WORKSPACE_PATH], struct words *names)
{
	const char *home = getenv("HOME");
	int n = 0;
	if (slice_starts(path, SLICE("~/")) && home)
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%s/%.*s", home, SLICE_FMT(slice_from(path, 2)));
	else if (slice_starts(path, SLICE("~")) || slice_starts(path, SLICE("%(prefix)")) || path.len == 0)
		return false;
	else if (slice_starts(path, SLICE("/")))
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%.*s", SLICE_FMT(path));
	else
		n = snprintf(out, LIMIT_WORKSPACE_PATH, "%s/%.*s", from, SLICE_FMT(path));
	names->failed = names->failed || n >= LIMIT_WORKSPACE_PATH;
	return n < LIMIT_WORKSPACE_PATH;
}

/* ---- settings ---- */

static bool is_one_of(struct slice name, const struct slice *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_ieq(name, table[i]))
			return true;
	return false;
}

static void add(const struct repository *r, struct slice path)
{
	char name[LIMIT_WORKSPACE_PATH];
	if (join(r->top, path, name, r->out))
		obeyed_add(r->dir, name, r->out);
}

/* Each path in a command. */
static void add_words(const struct repository *r, struct slice command)
{
	static const char between[] = " \t\n\b\"'`;|&()<>{}=!$,:";
	while (command.len > 0) {
		size_t n = 0;
		while (n < command.len && !memchr(between, command.ptr[n], sizeof(between) - 1))
			n++;
		struct slice word = slice_head(command, n);
		if (slice_find(word, '/') < word.len)
			add(r, word);
		command = slice_from(command, n + 1);
	}
}

static void read_config(const struct repository *r, const char *path, int depth);

static void include(const struct config *c, struct slice value)
{
	char from[LIMIT_WORKSPACE_PATH], name[LIMIT_WORKSPACE_PATH];
	struct words *out = c->repository->out;
	const size_t slash = slice_rfind(slice_str(c->path), '/');
	snprintf(from, sizeof(from), "%.*s", (int)slash, c->path);
	if (!join(from, value, name, out))
		return;
	obeyed_add(c->repository->dir, name, out);
	if (c->depth == LIMIT_GIT_INCLUDES)
		out->failed = true;
	else
		read_config(c->repository, name, c->depth + 1);
}

/* Conditions of an include are taken for true. */
static void take(void *arg, const struct git_setting *s)
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
	if (is_one_of(s->section, includes, N(includes)) && slice_ieq(s->key, SLICE("path")))
		include(c, s->value);
	else if (is_one_of(s->key, files, N(files)))
		add(c->repository, s->value);
	else if (!is_one_of(s->section, plain_sections, N(plain_sections)) &&
		 !is_one_of(s->key, plain_keys, N(plain_keys)))
		add_words(c->repository, s->value);
}

static void read_config(const struct repository *r, const char *path, int depth)
{
	struct config c = {.repository = r, .path = path, .depth = depth};
	char *text = malloc(LIMIT_GIT_CONFIG);
	ssize_t n = text ? read_file(path, text, LIMIT_GIT_CONFIG, r->out) : -1;
	if (!text || (n > 0 && !git_config_parse(slice_of(text, (size_t)n), take, &c)))
		r->out->failed = true;
	free(text);
}

/* ---- repositories ---- */

static void read_in(const struct repository *r, const char *dir, const char *name)
{
	char path[LIMIT_WORKSPACE_PATH + 32];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	read_config(r, path, 0);
}

static void read_those_of_user(const struct repository *r)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	read_config(r, "/etc/gitconfig", 0);
	if (config && config[0])
		read_in(r, config, "git/config");
	if (home && home[0]) {
		read_in(r, home, ".config/git/config");
		read_in(r, home, ".gitconfig");
	}
}

/* The path in a file of one line, which begins where the file is; false: there is none. */
static bool read_pointer(const char *dir, const char *name, struct slice before, char to[LIMIT_WORKSPACE_PATH],
			 struct words *out)
{
	char path[LIMIT_WORKSPACE_PATH + 16], text[LIMIT_WORKSPACE_PATH];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ssize_t n = read_file(path, text, sizeof(text), out);
	struct slice line = slice_trim(slice_of(text, n > 0 ? (size_t)n : 0));
	while (slice_ends(line, SLICE("\n")) || slice_ends(line, SLICE("\r")))
		line = slice_head(line, line.len - 1);
	return slice_starts(line, before) && join(dir, slice_trim(slice_from(line, before.len)), to, out);
}

/* A worktree has its own place in the repository that it belongs to, and shares the rest. */
static void read_repository(const struct repository *r, const char *git_dir)
{
	char common[LIMIT_WORKSPACE_PATH];
	if (!read_pointer(git_dir, "commondir", SLICE(""), common, r->out))
		snprintf(common, sizeof(common), "%s", git_dir);
	read_in(r, common, "config");
	read_in(r, git_dir, "config.worktree");
	read_those_of_user(r);
}

void obeyed_find_git(const char *dir, const char *parent, struct words *out)
{
	const struct repository r = {dir, parent, out};
	char path[LIMIT_WORKSPACE_PATH + 8], git_dir[LIMIT_WORKSPACE_PATH];
	struct stat st;
	snprintf(path, sizeof(path), "%s/.git", parent);
	if (stat(path, &st) != 0)
		return;
	const bool is_found = S_ISDIR(st.st_mode)
				      ? snprintf(git_dir, sizeof(git_dir), "%s", path) < (int)sizeof(git_dir)
				      : read_pointer(parent, ".git", SLICE("gitdir:"), git_dir, out);
	if (is_found)
		read_repository(&r, git_dir);
}

static bool has(const char *dir, const char *name)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0;
}

/* All in it but what commits write is obeyed anyway; of that, links may lead elsewhere. */
void obeyed_find_bare(const char *dir, const char *repository, struct words *out)
{
	const struct repository r = {dir, repository, out};
	if (!has(repository, "HEAD") || !(has(repository, "objects") || has(repository, "commondir")))
		return;
	add(&r, SLICE("hooks"));
	add(&r, SLICE("config"));
	read_repository(&r, repository);
}
