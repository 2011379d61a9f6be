/* cage apply. First everything is looked at: a workspace that has moved on is left alone. Then all that is new is written
 * beside, and at last put into place by renaming, which is undone if it fails halfway. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/rundir.h"
#include "orchestrator/workspace.h"

static const char help_text[] =
	"usage: cage apply PATCH\n"
	"\n"
	"Makes the changes that an agent made in its view of a workspace (cage run --workspace),\n"
	"in the workspace itself: all of them, or none where something there has changed since.\n"
	"PATCH is the directory that cage run named at its end.\n"
	"\n"
	"Exit codes: 0 good, 1 failed or there is a conflict, 2 wrong usage.\n";

struct patch {
	char dir[LIMIT_WORKSPACE_PATH]; /* the workspace */
	char base[LIMIT_WORKSPACE_PATH], files[LIMIT_WORKSPACE_PATH], conflicts_file[LIMIT_WORKSPACE_PATH];
	char stage[LIMIT_WORKSPACE_PATH]; /* in the workspace, with the next two in it; empty: none */
	char old[LIMIT_WORKSPACE_PATH + 8], new[LIMIT_WORKSPACE_PATH + 8];
	struct tree before, after;
	struct owner owner; /* of what is made, by root */
	size_t conflicts;
	size_t not_undone;
	size_t taken, made; /* how many are out of the way, and how many are in place */
};

static bool name_it(char out[LIMIT_WORKSPACE_PATH], const char *patch, const char *name)
{
	return snprintf(out, LIMIT_WORKSPACE_PATH, "%s/%s", patch, name) < LIMIT_WORKSPACE_PATH;
}

static bool patch_open(struct patch *p, const char *path)
{
	char name[LIMIT_WORKSPACE_PATH];
	struct stat st;
	*p = (struct patch){0};
	if (!name_it(p->base, path, "base") || !name_it(p->files, path, "files") || !name_it(name, path, "workspace") ||
	    !name_it(p->conflicts_file, path, "conflicts"))
		return false;
	FILE *f = fopen(name, "re");
	size_t n = f ? fread(p->dir, 1, sizeof(p->dir) - 1, f) : 0;
	if (f)
		fclose(f);
	if (n == 0 || stat(p->dir, &st) != 0)
		return false;
	p->owner = (struct owner){st.st_uid, st.st_gid};
	return true;
}

static const struct owner *owner_of(const struct patch *p)
{
	return geteuid() == 0 ? &p->owner : NULL;
}

static bool failed(const char *path)
{
	char room[LIMIT_SHOWN_PATH];
	int error = errno;
	say("%s: %s", path_shown(path, room), strerror(error));
	return false;
}

/* ---- looking ---- */

/* What was found at the end of the run. */
static void read_conflicts(struct patch *p)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(p->conflicts_file, "re");
	for (ssize_t n; f && (n = getline(&line, &size, f)) > 0; p->conflicts++)
		say("%.*s", (int)(line[n - 1] == '\n' ? n - 1 : n), line);
	free(line);
	if (f)
		fclose(f);
}

/* An empty directory is in nobody's way, and in no patch. */
static bool is_empty_dir(const char *root, const char *path)
{
	char name[2 * LIMIT_WORKSPACE_PATH];
	snprintf(name, sizeof(name), "%s/%s", root, path);
	int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int n = 0;
	while (dir && n < 3 && readdir(dir))
		n++; /* of which two are the directory and the one above */
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return dir && n < 3;
}

/* Is it there as it was when the agent began? */
static bool check(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	char room[LIMIT_SHOWN_PATH];
	if (entry_same(p->base, p->dir, path) || (kind == CHANGE_ADDED && is_empty_dir(p->dir, path)))
		return true;
	say("%s has changed since", path_shown(path, room));
	p->conflicts++;
	return true;
}

/* ---- doing ---- */

static bool make_stage(struct patch *p)
{
	int n = snprintf(p->stage, sizeof(p->stage), "%s/.cage-apply.XXXXXX", p->dir);
	if (n >= (int)sizeof(p->stage) || !mkdtemp(p->stage)) {
		p->stage[0] = '\0';
		return failed(p->dir);
	}
	snprintf(p->old, sizeof(p->old), "%s/old", p->stage);
	snprintf(p->new, sizeof(p->new), "%s/new", p->stage);
	return (mkdir(p->old, 0700) == 0 && mkdir(p->new, 0700) == 0) || failed(p->stage);
}

/* All that needs space or rights to read, before anything is touched. */
static bool stage(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	return kind == CHANGE_DELETED || entry_copy(p->files, p->new, path, owner_of(p)) || failed(path);
}

/* A file that is to be replaced stays until then; one that is deleted may stand where a directory is to be. */
static bool take_out(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	bool ok = kind == CHANGE_ADDED || entry_save(p->dir, p->old, path);
	ok = ok && (kind != CHANGE_DELETED || entry_remove(p->dir, path));
	p->taken += ok;
	return ok || failed(path);
}

static bool put_in(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	bool ok = kind == CHANGE_DELETED || entry_move(p->new, p->dir, path, owner_of(p));
	p->made += ok;
	return ok || failed(path);
}

/* ---- undoing ---- */

static bool take_back(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->made == 0)
		return false;
	p->made--;
	if (kind == CHANGE_ADDED)
		entry_remove(p->dir, path);
	return true;
}

static bool put_back(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->taken == 0)
		return false;
	p->taken--;
	if (kind == CHANGE_ADDED || entry_same(p->old, p->dir, path) || entry_move(p->old, p->dir, path, owner_of(p)))
		return true;
	failed(path);
	p->not_undone++;
	return true;
}

static void undo(struct patch *p)
{
	tree_compare(&p->before, &p->after, take_back, p);
	tree_compare(&p->before, &p->after, put_back, p);
}

/* ---- all of it ---- */

static bool each(struct patch *p, change_found *found)
{
	return tree_compare(&p->before, &p->after, found, p);
}

/* Nobody who asks us to end gets half of it. */
static bool commit(struct patch *p)
{
	sigset_t asked, before;
	sigemptyset(&asked);
	for (int i = 0; i < 4; i++)
		sigaddset(&asked, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
	sigprocmask(SIG_BLOCK, &asked, &before);
	bool ok = each(p, take_out) && each(p, put_in);
	if (!ok)
		undo(p);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool apply(struct patch *p)
{
	bool ok = tree_read(&p->before, p->base) && tree_read(&p->after, p->files);
	if (!ok)
		return false;
	read_conflicts(p);
	each(p, check);
	ok = p->conflicts == 0 && make_stage(p) && each(p, stage) && commit(p);
	if (p->stage[0] && p->not_undone == 0)
		tree_remove(p->stage);
	if (p->not_undone > 0)
		say("%s is changed in part; what was there is in %s", p->dir, p->old);
	else if (!ok)
		say("nothing was changed in %s", p->dir);
	return ok;
}

int patch_apply(const char *path)
{
	static struct patch p;
	if (!patch_open(&p, path)) {
		say("%s is no patch of cage run, or its workspace is gone", path);
		return 1;
	}
	bool ok = apply(&p);
	tree_free(&p.before);
	tree_free(&p.after);
	return ok ? 0 : 1;
}

int cmd_apply(int argc, char **argv)
{
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return fputs(help_text, stdout) >= 0 ? 0 : 1;
	if (argc == 2 && argv[1][0] != '-')
		return patch_apply(argv[1]);
	say("apply: say cage apply PATCH");
	return 2;
}
