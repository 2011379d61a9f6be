/* A room that was made before anybody asked for it: what it is for comes with FRAME_BEGIN, as a spec in the place of the one that it
 * was made from. Of that are taken the command, its variables and its bounds; the room is what it is. It begins once: a file that
 * stays says that it has, whoever asks later. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/keeper/keeper.h"
#include "orchestrator/launch.h"

static void fail(struct keeper *k, const char *why)
{
	char text[LIMIT_KEEPER_MESSAGE];
	snprintf(text, sizeof(text), "the room that stood could not begin: %s", why);
	keeper_finish(k, RESULT_FAILED, "keeper.failed", text);
}

static bool leave_mark(void)
{
	int fd = open("begun", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0;
	fd_close(&fd);
	return ok;
}

static bool variables_fit(const struct words *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (strlen(env->list[i]) > LIMIT_INSIDE_FRAME)
			return false;
	return true;
}

static void swap_words(struct words *a, struct words *b)
{
	const struct words kept = *a;
	*a = *b;
	*b = kept;
}

/* What is left in `next` is the caller's to free. */
static void take_over(struct keeper *k, struct spec *next)
{
	struct spec *s = &k->spec;
	char *dir = s->dir;
	swap_words(&s->cmd, &next->cmd);
	swap_words(&s->env, &next->env);
	swap_words(&s->artifacts, &next->artifacts);
	memcpy(s->artifact_bytes, next->artifact_bytes, sizeof(s->artifact_bytes));
	s->dir = next->dir;
	next->dir = dir;
	s->wall_ms = next->wall_ms;
	s->grace_ms = next->grace_ms;
	s->output = k->output.limit = next->output;
	s->keep = next->keep;
}

void keeper_begin(struct keeper *k)
{
	struct spec next;
	const char *why = NULL;
	if (k->state != KEEPER_STANDING)
		return;
	if (!spec_read(&next, &why) || !variables_fit(&next.env)) {
		fail(k, why ? why : "a variable is too long");
	} else if (!leave_mark()) {
		fail(k, strerror(errno));
	} else {
		take_over(k, &next);
		keeper_enter(k, KEEPER_FILLING);
		for (size_t i = 0; i < k->spec.env.n; i++)
			wire_send(k, FRAME_ENV, 0, slice_str(k->spec.env.list[i]));
		if (k->state == KEEPER_FILLING)
			fill_begin(k);
	}
	spec_free(&next);
}
