/* A sandbox that stood before it was asked for (warm.h), and whose keeper was gone before it was told to begin: nothing has run in
 * it, so that it is started as any other, with the directory that it has. That is done once: `begun` says that it has begun, by the
 * keeper that stood (orchestrator/keeper/stand.c) or here, and stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/service/sandbox.h"

bool sandbox_can_fall_back(const struct sandbox *b)
{
	return json_is_true(json_object_get(b->row.spec, "warm")) && b->row.state == CREATING && !b->stop_us &&
	       !sandbox_has(b, "begun");
}

static bool leave_mark(const char *dir)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/begun", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* With a result a keeper would take it for one that has ended. */
void sandbox_fall_back(struct sandbox *b)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/result", b->dir);
	if (!leave_mark(b->dir) || (unlink(path) != 0 && errno != ENOENT)) {
		say("%s: can't be started anew: %s", b->row.id, strerror(errno));
		sandbox_set_clock(b, LIMIT_SERVE_TICK_MS);
		return;
	}
	say("%s: the room that stood for it is gone, and it is started anew", b->row.id);
	sandbox_start(b);
}
