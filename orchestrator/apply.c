/* cage apply. First everything is looked at: a workspace that has moved on is left alone, and what programs of this machine
 * would run or obey is made only where that was agreed to. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/apply_private.h"
#include "orchestrator/misuse.h"
#include "orchestrator/rights.h"

static const char help_text[] =
	"usage: cage apply [--even-if-run] PATCH\n"
	"\n"
	"Makes the changes that an agent made in its view of a workspace (cage run --workspace),\n"
	"in the workspace itself: all of them, or none where something there has changed since.\n"
	"PATCH is the directory that cage run named at its end.\n"
	"\n"
	"What git writes for commits and branches in a repository is left out: git believes what it\n"
	"finds there, such as names in its index.\n"
	"\n"
	"  --even-if-run   also that, and also where programs of this machine would run or obey\n"
	"                  what was changed without being asked, such as hooks of git or settings\n"
	"                  of an editor, or where a link leads out of the workspace. These are\n"
	"                  named; without this option nothing is changed then\n"
	"  -h, --help      print this and exit\n"
	"\n"
	"Exit codes: 0 good, 1 failed, there is a conflict, or --even-if-run is needed, 2 wrong\n"
	"usage.\n";

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
	if (entry_same(p->base, APPLY_ROOT, path) || (kind == CHANGE_ADDED && is_empty_dir(APPLY_ROOT, path)))
		return true;
	if (p->conflicts++ < LIMIT_LISTED)
		say("%s has changed since", path_shown(path, room));
	return true;
}

static struct obeyed_in judged(const struct patch *p)
{
	return (struct obeyed_in){APPLY_ROOT, p->files, &p->found, p->own};
}

static bool check_obeyed(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	char room[LIMIT_SHOWN_PATH];
	const struct obeyed_in in = judged(p);
	const char *why = obeyed_why(&in, path);
	(void)kind;
	if (why && p->obeyed++ < LIMIT_LISTED)
		say("%s %s", path_shown(path, room), why);
	return true;
}

/* What is there already as it shall be is no change any more. */
static bool is_open(void *arg, const char *path)
{
	const struct patch *p = arg;
	return !entry_same(p->files, APPLY_ROOT, path);
}

static bool count_history(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	const struct obeyed_in in = judged(p);
	(void)kind;
	p->left += obeyed_is_history(&in, path);
	return true;
}

static bool is_no_history(void *arg, const char *path)
{
	const struct patch *p = arg;
	const struct obeyed_in in = judged(p);
	return !obeyed_is_history(&in, path) || obeyed_why(&in, path);
}

static void keep_entries(struct patch *p, tree_stays *stays)
{
	tree_keep(&p->before, stays, p);
	tree_keep(&p->after, stays, p);
}

/* Commits of an agent are for those who have looked at them: files come out of them past all that is looked at here. */
static void leave_out(struct patch *p, enum apply_what what)
{
	keep_entries(p, is_open);
	if (what == APPLY_OBEYED_TOO)
		return;
	tree_compare(&p->before, &p->after, count_history, p);
	keep_entries(p, is_no_history);
}

static bool may_be_made(struct patch *p, enum apply_what what)
{
	leave_out(p, what);
	tree_compare(&p->before, &p->after, check, p);
	tree_compare(&p->before, &p->after, check_obeyed, p);
	if (p->conflicts > LIMIT_LISTED || p->obeyed > LIMIT_LISTED)
		say("and more of them than are listed");
	if (p->conflicts == 0 && p->obeyed > 0 && what != APPLY_OBEYED_TOO)
		say("if that is what you want: cage apply --even-if-run %s", p->top);
	return p->conflicts == 0 && (p->obeyed == 0 || what == APPLY_OBEYED_TOO);
}

/* With the rights of the owner of the workspace. */
static bool apply_as_owner(struct patch *p, enum apply_what what)
{
	struct rights rights;
	if (!rights_lower(&rights, &p->owner)) {
		say("can't work with the rights of the owner of %s: %s", p->shown, strerror(errno));
		return false;
	}
	bool ok = !patch_must_end() && may_be_made(p, what) && patch_make(p);
	patch_clean(p);
	rights_restore(&rights);
	return ok;
}

static void tell(const struct patch *p)
{
	say("%zu %s made in %s%s", p->made, p->made == 1 ? "change" : "changes", p->shown,
	    p->made == 0 && p->left == 0 ? ": all of it is there already" : "");
	if (p->left > 0)
		say("%zu in a repository of git (commits, branches, its index) left out; to make them too: cage apply "
		    "--even-if-run %s",
		    p->left, p->top);
}

static bool apply(struct patch *p, enum apply_what what)
{
	bool ok = tree_read(&p->before, p->base, TREE_OF_ALL) && tree_read(&p->after, p->files, TREE_OF_ALL) &&
		  patch_read_conflicts(p);
	patch_hold_signals(p);
	if (ok)
		obeyed_find(APPLY_ROOT, &p->owner, &p->found);
	ok = ok && patch_lend(p) && apply_as_owner(p, what);
	patch_end_lending(p);
	if (ok)
		tell(p);
	if (!ok && p->not_undone == 0)
		say("nothing was changed in %s", p->shown);
	patch_let_signals(p);
	return ok;
}

int patch_apply(const char *path, enum apply_what what)
{
	static struct patch p;
	bool ok = patch_open(&p, path) && apply(&p, what);
	patch_close(&p);
	return ok ? 0 : 1;
}

int cmd_apply(int argc, char **argv)
{
	static const struct option options[] = {
		{"even-if-run", no_argument, NULL, 'e'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	enum apply_what what = APPLY_PLAIN;
	char word[USAGE_WORD];
	for (int opt; (opt = usage_next(argc, argv, ":h", options, NULL)) != -1;) {
		if (opt == 'h') {
			fputs(help_text, stdout);
			return usage_printed();
		}
		if (opt != 'e') {
			const char *why = usage_fault(opt, argv, options, word);
			return wrong_usage("apply", word, why);
		}
		what = APPLY_OBEYED_TOO;
	}
	if (optind + 1 == argc)
		return patch_apply(argv[optind], what);
	return wrong_usage("apply", "PATCH", "one is expected: cage apply [--even-if-run] PATCH");
}
