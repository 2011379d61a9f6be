/* Pieces of a room. */
#include "orchestrator/gate/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/say.h"

static int add(struct plan *plan, enum piece_kind kind, int tree, const char *text, const char *path)
{
	if (plan->n == LIMIT_ROOM_PIECES) {
		say("%s: more than %d things in a room", path, LIMIT_ROOM_PIECES);
		return -1;
	}
	struct piece *p = &plan->pieces[plan->n];
	*p = (struct piece){.kind = kind,
			    .path = strdup(path),
			    .tree = tree,
			    .option = plan->option,
			    .link = text ? strdup(text) : NULL};
	if (!p->path || (text && !p->link))
		return say_errno(path);
	plan->n++;
	return 0;
}

int plan_tree(struct plan *plan, int tree, const char *path)
{
	return tree < 0 ? say_errno(path) : add(plan, PIECE_TREE, tree, NULL, path);
}

int plan_read_only(struct plan *plan, int tree, const char *path)
{
	if (plan_tree(plan, tree, path) < 0)
		return -1;
	return mount_tree_restrict(tree, PLAN_WITHOUT_RIGHTS | MOUNT_ATTR_RDONLY) < 0 ? say_errno(path) : 0;
}

int plan_copy(struct plan *plan, int tree, const char *path)
{
	return tree < 0 ? say_errno(path) : add(plan, PIECE_COPY, tree, NULL, path);
}

int plan_link(struct plan *plan, const char *text, const char *path)
{
	return add(plan, PIECE_LINK, -1, text, path);
}

static int make_parents(const char *path)
{
	char part[PATH_MAX];
	const size_t len = strlen(path);
	if (len >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

int plan_make_path(const char *path, int is_directory)
{
	struct stat st;
	if (stat(path, &st) == 0)
		return 0;
	if (make_parents(path) < 0)
		return -1;
	if (is_directory)
		return mkdir(path, 0755);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* A directory of this machine that nobody asked for, and that was removed meanwhile: it has nothing to show. */
static int is_removed(const struct piece *p)
{
	struct stat st;
	return !p->option && fstat(p->tree, &st) == 0 && st.st_nlink == 0;
}

static int place_tree(const struct piece *p)
{
	struct stat st;
	if (fstat(p->tree, &st) < 0 || plan_make_path(p->path, S_ISDIR(st.st_mode)) < 0)
		return -1;
	return mount_tree_attach(p->tree, p->path) == 0 || is_removed(p) ? 0 : -1;
}

static int place(const struct piece *p, struct copies *later)
{
	switch (p->kind) {
	case PIECE_TREE:
		return place_tree(p);
	case PIECE_COPY:
		return copies_add(later, p->tree, p->path);
	case PIECE_LINK:
		return make_parents(p->path) < 0 ? -1 : symlink(p->link, p->path);
	}
	errno = EINVAL;
	return -1;
}

/* Whoever asks for a place in what can only be read has named the wrong one. */
static int say_place(const struct piece *p)
{
	if (!p->option || errno != EROFS) {
		say_errno(p->path);
		return EXIT_UNLOCKED;
	}
	say("%s: %s is not there, and can't be made in what is read-only in the room", p->option, p->path);
	return EXIT_USAGE;
}

int plan_place(const struct plan *plan, struct copies *later)
{
	for (size_t i = 0; i < plan->n; i++)
		if (place(&plan->pieces[i], later) < 0)
			return say_place(&plan->pieces[i]);
	return 0;
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct piece *p = &plan->pieces[i];
		if (p->tree >= 0)
			close(p->tree);
		free(p->path);
		free(p->link);
	}
	plan->n = 0;
}
