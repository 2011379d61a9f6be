/* Files of a workspace. What is got is spooled before its first byte is answered, so that a failure is an answer of its own; what
 * is put was spooled while it came. Neither is in memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/inside/beneath.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/tools.h"

struct transfer {
	struct request *request;
	struct link_job *job;
	int fd; /* the spool */
	size_t size;
};

static void transfer_free(struct transfer *t)
{
	if (t->job)
		job_forget(t->job);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

static void on_gone(void *work)
{
	transfer_free(work);
}

static struct transfer *transfer_new(struct request *r, int fd)
{
	struct transfer *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct transfer){.request = r, .fd = fd};
	r->gone = on_gone;
	r->work = t;
	return t;
}

static void fail(struct transfer *t, int error)
{
	struct request *r = t->request;
	r->gone = NULL;
	transfer_free(t);
	answer_errno(r, error);
}

/* ---- getting ---- */

static void on_data(void *arg, enum frame_kind kind, struct slice bytes)
{
	struct transfer *t = arg;
	if (kind != FRAME_OUT)
		return;
	t->size += bytes.len;
	if (t->size > LIMIT_SERVE_FILE)
		fail(t, EFBIG);
	else if (write(t->fd, bytes.ptr, bytes.len) != (ssize_t)bytes.len)
		fail(t, ENOSPC);
}

static void on_got(void *arg, struct job_end end)
{
	struct transfer *t = arg;
	struct request *r = t->request;
	t->job = NULL;
	if (end.how != JOB_EXIT || lseek(t->fd, 0, SEEK_SET) != 0) {
		fail(t, end.how == JOB_ERROR ? end.number : EIO);
		return;
	}
	int fd = t->fd;
	size_t size = t->size;
	t->fd = -1;
	r->gone = NULL;
	transfer_free(t);
	answer_file(r, fd, size);
}

static void get_from(struct sandbox *b, struct request *r)
{
	static const struct job_events events = {.data = on_data, .done = on_got};
	int fd = service_spool(r->service);
	struct transfer *t = fd >= 0 ? transfer_new(r, fd) : NULL;
	if (!t) {
		if (fd >= 0)
			close(fd);
		answer_errno(r, errno);
		return;
	}
	t->job = link_begin(b->link, FRAME_READ, slice_str(r->path), &events, t);
	if (!t->job)
		fail(t, EBUSY);
}

/* Of one that has ended, where it was to be kept. */
static void get_kept(struct request *r)
{
	char dir[BACKEND_PATH], path[BACKEND_PATH + 8];
	struct stat st;
	service_dir(r->service, r->sandbox, dir);
	snprintf(path, sizeof(path), "%s/kept", dir);
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = root >= 0 ? beneath_open_file(root, r->path) : -1;
	int why = errno;
	if (root >= 0)
		close(root);
	if (root < 0)
		answer_problem(r, 409, "its workspace was not kept");
	else if (fd < 0 || fstat(fd, &st) != 0)
		answer_errno(r, why);
	else
		answer_file(r, fd, (size_t)st.st_size);
}

void api_get_file(struct request *r)
{
	struct row row = {0};
	enum store_result result = store_get(r->service->store, r->sandbox, &row);
	enum state state = row.state;
	row_free(&row);
	if (result != STORE_OK) {
		answer_store(r, result);
		return;
	}
	if (!state_is_open(state) && state != DELETED) {
		get_kept(r);
		return;
	}
	struct sandbox *b = api_ready_sandbox(r);
	if (b)
		get_from(b, r);
}

/* ---- putting ---- */

static void send_more(void *arg)
{
	struct transfer *t = arg;
	char bytes[LIMIT_INSIDE_FRAME];
	while (t->fd >= 0 && job_has_room(t->job)) {
		ssize_t n = read(t->fd, bytes, sizeof(bytes));
		if (n > 0) {
			job_send(t->job, FRAME_DATA, slice_of(bytes, (size_t)n));
			continue;
		}
		close(t->fd);
		t->fd = -1;
		if (n < 0) {
			fail(t, EIO);
			return;
		}
		job_send(t->job, FRAME_END, SLICE_NONE);
	}
}

static void on_put(void *arg, struct job_end end)
{
	struct transfer *t = arg;
	struct request *r = t->request;
	t->job = NULL;
	if (end.how != JOB_EXIT) {
		fail(t, end.number);
		return;
	}
	r->gone = NULL;
	transfer_free(t);
	answer_nothing(r);
}

void api_put_file(struct request *r)
{
	static const struct job_events events = {.done = on_put, .drained = send_more};
	struct sandbox *b = api_ready_sandbox(r);
	if (!b)
		return;
	struct transfer *t = lseek(r->spool, 0, SEEK_SET) == 0 ? transfer_new(r, r->spool) : NULL;
	if (!t) {
		answer_problem(r, 503, "the file can't be read again");
		return;
	}
	r->spool = -1;
	t->job = link_begin(b->link, FRAME_WRITE, slice_str(r->path), &events, t);
	if (t->job)
		send_more(t);
	else
		fail(t, EBUSY);
}
