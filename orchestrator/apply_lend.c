/* A capability to read all would be enough too, but root of most containers has only the one that also writes past all
 * permissions. So no right of root's is kept, and the patch is copied instead. It lies beside the original, in a directory that
 * only root can enter: the owner reaches it by descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/apply_private.h"
#include "orchestrator/tree_whole.h"

/* One of both trees. path: where it is found then. False with a message. */
static bool lend(const struct patch *p, struct tree *t, const char *name, char *path, int *fd)
{
	char to[LIMIT_WORKSPACE_PATH + 24];
	const char *failed = "";
	snprintf(to, sizeof(to), "%s/%s", p->lent, name);
	if (mkdir(to, 0700) != 0)
		return patch_failed(to);
	if (!tree_copy(t, to, NULL, NULL, &failed))
		return patch_failed(failed);
	if (!tree_give(to, &p->owner))
		return patch_failed(to);
	*fd = open(to, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	snprintf(path, LIMIT_WORKSPACE_PATH, "/proc/self/fd/%d/.", *fd);
	snprintf(t->root, sizeof(t->root), "%s", path);
	return *fd >= 0 || patch_failed(to);
}

bool patch_lend(struct patch *p)
{
	if (geteuid() != 0 || p->owner.uid == 0)
		return true;
	snprintf(p->lent, sizeof(p->lent), "%s.XXXXXX", p->top);
	if (!mkdtemp(p->lent)) {
		patch_failed(p->lent);
		p->lent[0] = '\0';
		return false;
	}
	return lend(p, &p->before, "base", p->base, &p->lent_fds[0]) &&
	       lend(p, &p->after, "files", p->files, &p->lent_fds[1]);
}

void patch_end_lending(struct patch *p)
{
	for (size_t i = 0; i < 2; i++)
		if (p->lent_fds[i] >= 0)
			close(p->lent_fds[i]);
	if (p->lent[0])
		tree_remove(p->lent);
}
