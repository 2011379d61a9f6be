/* FRAME_WRITE for each file. */
#include "orchestrator/keeper/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/keeper/keeper.h"

#define TOP "files"

static void fail(struct keeper *k, const char *path, int why)
{
	char text[LIMIT_KEEPER_MESSAGE];
	snprintf(text, sizeof(text), "%.300s could not be put into the workspace: %s", path, strerror(why));
	keeper_finish(k, RESULT_FAILED, "room.failed", text);
}

/* False with errno. Links and the like are nothing that the service makes there. */
static bool add(struct fill *f, const FTSENT *e)
{
	switch (e->fts_info) {
	case FTS_F:
		words_add(&f->paths, "%s", e->fts_path + strlen(TOP) + 1);
		errno = f->paths.failed ? ENOMEM : E2BIG;
		return !f->paths.failed && f->paths.n <= LIMIT_KEEPER_FILES;
	case FTS_D:
	case FTS_DP:
		return true;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		errno = e->fts_errno;
		return false;
	default:
		errno = EINVAL;
		return false;
	}
}

static bool find_files(struct fill *f)
{
	char *const top[] = {(char *)TOP, NULL};
	if (access(TOP, F_OK) != 0)
		return errno == ENOENT;
	FTS *fts = fts_open(top, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	bool ok = fts != NULL;
	errno = 0;
	for (FTSENT *e = ok ? fts_read(fts) : NULL; ok && e; e = ok ? fts_read(fts) : NULL)
		ok = add(f, e);
	int why = errno;
	if (fts)
		fts_close(fts);
	errno = why;
	return ok && why == 0;
}

static void next(struct keeper *k);

static void heard(struct keeper *k, struct task *t, const struct frame *frame)
{
	struct fill *f = &k->fill;
	int why;
	(void)t;
	if (frame->kind != FRAME_DONE)
		return;
	f->task = NULL;
	fd_close(&f->fd);
	if (k->state != KEEPER_FILLING)
		return;
	if (!done_is_good(frame, &why)) {
		fail(k, f->paths.list[f->at], why);
		return;
	}
	f->at++;
	next(k);
}

static int open_file(const char *path)
{
	char whole[LIMIT_KEEPER_PATH];
	if (snprintf(whole, sizeof(whole), TOP "/%s", path) < (int)sizeof(whole))
		return open(whole, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	errno = ENAMETOOLONG;
	return -1;
}

static void next(struct keeper *k)
{
	struct fill *f = &k->fill;
	if (f->at == f->paths.n) {
		keeper_is_filled(k);
		return;
	}
	const char *path = f->paths.list[f->at];
	f->fd = open_file(path);
	f->task = f->fd >= 0 ? wire_begin(k, heard, NULL) : NULL;
	if (!f->task) {
		fail(k, path, f->fd >= 0 ? EBUSY : errno);
		return;
	}
	wire_send(k, FRAME_WRITE, f->task->id, slice_of(path, strlen(path) + 1));
	fill_go_on(k);
}

void fill_begin(struct keeper *k)
{
	struct fill *f = &k->fill;
	if (!find_files(f)) {
		fail(k, TOP, errno);
		return;
	}
	next(k);
}

void fill_go_on(struct keeper *k)
{
	struct fill *f = &k->fill;
	char bytes[LIMIT_INSIDE_FRAME];
	while (k->state == KEEPER_FILLING && f->task && f->fd >= 0 && !wire_is_clogged(&k->wire)) {
		ssize_t n = read(f->fd, bytes, sizeof(bytes));
		if (n < 0) {
			fail(k, f->paths.list[f->at], errno);
			return;
		}
		wire_send(k, n > 0 ? FRAME_DATA : FRAME_END, f->task->id, slice_of(bytes, (size_t)n));
		if (n == 0)
			fd_close(&f->fd);
	}
}

void fill_free(struct fill *f)
{
	words_free(&f->paths);
	fd_close(&f->fd);
}
