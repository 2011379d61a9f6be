/* FRAME_TAKE, one after the other. */
#include "orchestrator/keeper/artifacts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/write_all.h"
#include "orchestrator/keeper/keeper.h"

#define TOP "artifacts"

bool artifacts_are_wanted(const struct keeper *k)
{
	return k->result.state == RESULT_SUCCEEDED && k->artifacts.at < k->spec.artifacts.n;
}

/* ---- what is wrong ---- */

static void fail(struct keeper *k, const char *reason, const char *why)
{
	struct result *r = &k->result;
	char text[LIMIT_KEEPER_MESSAGE];
	int n = snprintf(text, sizeof(text), "the artifact %.300s %s", k->spec.artifacts.list[k->artifacts.at], why);
	r->state = RESULT_FAILED;
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
	result_say(r, slice_of(text, (size_t)n));
}

/* No more are taken out; one that is under way is heard no more. */
static void give_up(struct keeper *k, const char *reason, const char *why)
{
	struct artifacts *t = &k->artifacts;
	fail(k, reason, why);
	if (t->job)
		wire_send(k, FRAME_CANCEL, t->job, SLICE_NONE);
	t->job = 0;
	fd_close(&t->fd);
	keeper_took_artifacts(k);
}

static void give_up_here(struct keeper *k)
{
	if (errno == ENOSPC || errno == EDQUOT)
		give_up(k, "disk.full", "could not be stored: the disk of the service is full");
	else
		give_up(k, "artifact.failed", strerror(errno));
}

static void give_up_there(struct keeper *k, int why)
{
	if (why == ENOENT || why == ENOTDIR)
		give_up(k, "artifact.missing", "is not there");
	else if (why == EISDIR || why == EINVAL || why == ELOOP || why == EXDEV || why == ENXIO)
		give_up(k, "artifact.missing", "is no regular file, or a link leads to it");
	else
		give_up(k, "artifact.failed", strerror(why));
}

/* ---- one after the other ---- */

static void next(struct keeper *k);

static void take_bytes(struct keeper *k, struct task *t, struct slice piece)
{
	struct artifacts *own = &k->artifacts;
	own->bytes += piece.len;
	if (own->bytes > k->spec.artifact_bytes[own->at])
		give_up(k, "artifact.too_large", "is longer than it may be");
	else if (!write_all(own->fd, piece.ptr, piece.len))
		give_up_here(k);
	else
		wire_took(k, t, piece.len);
}

static void heard(struct keeper *k, struct task *t, const struct frame *f)
{
	struct artifacts *own = &k->artifacts;
	int why;
	if (k->state != KEEPER_PULLING || own->job != t->id)
		return;
	if (f->kind == FRAME_OUT) {
		take_bytes(k, t, f->payload);
	} else if (f->kind == FRAME_DONE) {
		own->job = 0;
		if (!done_is_good(f, &why)) {
			give_up_there(k, why);
			return;
		}
		own->at++;
		next(k);
	}
}

static bool make(struct artifacts *t)
{
	char path[sizeof(TOP) + 24];
	snprintf(path, sizeof(path), TOP "/%zu", t->at);
	t->bytes = 0;
	t->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return t->fd >= 0;
}

static void next(struct keeper *k)
{
	struct artifacts *t = &k->artifacts;
	fd_close(&t->fd);
	if (t->at == k->spec.artifacts.n) {
		keeper_took_artifacts(k);
		return;
	}
	if (!make(t)) {
		give_up_here(k);
		return;
	}
	const char *path = k->spec.artifacts.list[t->at];
	const struct task *task = wire_begin(k, heard, NULL);
	if (!task) {
		give_up(k, "artifact.failed", "could not be asked for: too much is under way");
		return;
	}
	t->job = task->id;
	wire_send(k, FRAME_TAKE, task->id, slice_of(path, strlen(path) + 1));
}

void artifacts_begin(struct keeper *k)
{
	if (mkdir(TOP, 0700) == 0)
		next(k);
	else
		give_up_here(k);
}

void artifacts_end(struct keeper *k)
{
	fd_close(&k->artifacts.fd);
	if (artifacts_are_wanted(k))
		fail(k, "artifact.failed", "could not be taken out before the end of the room");
}
