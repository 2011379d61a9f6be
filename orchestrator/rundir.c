/* Making and removing the directory of a run. */
#include "orchestrator/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/tree_whole.h"

static bool make(char out[RUNDIR_PATH], const char *top, const char *name, mode_t mode)
{
	return snprintf(out, RUNDIR_PATH, "%s/%s", top, name) < RUNDIR_PATH && mkdir(out, 0700) == 0 &&
	       chmod(out, mode) == 0;
}

/* In /tmp, whatever TMPDIR says: the room has one of its own there, where the kit can be shown under the same name. */
bool rundir_make(struct rundir *d)
{
	char top[RUNDIR_PATH] = "/tmp/cage-run.XXXXXX";
	*d = (struct rundir){.top = ""};
	if (mkdtemp(top)) {
		memcpy(d->top, top, sizeof(top));
		if (chmod(top, 0711) == 0 && make(d->hidden, top, "private", 0700) && make(d->kit, top, "kit", 0755) &&
		    make(d->view, top, "view", 0700))
			return true;
	}
	say("can't make %s: %s", top, strerror(errno));
	return false;
}

bool rundir_make_home(struct rundir *d, uid_t owner)
{
	return make(d->home, d->top, "home", 0700) && chown(d->home, owner, (gid_t)owner) == 0;
}

void rundir_remove(struct rundir *d)
{
	if (d->top[0])
		tree_remove(d->top);
	*d = (struct rundir){0};
}
