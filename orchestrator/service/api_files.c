/* Files of a workspace: to the sandbox they are calls of file_read and file_write. What is got is spooled before its first byte is answered, so that a failure is an answer of its own; what
 * is put was spooled while it came. Neither is in memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/inside/beneath.h"
#include "orchestrator/service/call.h"
#include "orchestrator/service/create.h"

struct transfer {
	struct call call; /* first */
	int fd;           /* the spool; -1: it was given away */
	size_t size;
	char path[LIMIT_SERVE_PATH + 1];
};

static struct transfer *of(struct call *c)
{
	return (struct transfer *)c;
}

static void on_free(struct call *c)
{
	struct transfer *t = of(c);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

/* NULL: it was answered. fd is taken over. */
static struct transfer *transfer_new(struct request *r, const struct call_kind *kind, enum tool tool, int fd)
{
	struct transfer *t = calloc(1, sizeof(*t));
	if (!t || !call_init(&t->call, kind, r, tool)) {
		free(t);
		close(fd);
		answer_problem(r, 503, "no memory");
		return NULL;
	}
	t->fd = fd;
	t->call.stall_ms = LIMIT_SERVE_FILE_STALL_MS;
	snprintf(t->path, sizeof(t->path), "%s", r->path);
	snprintf(t->call.detail, sizeof(t->call.detail), "%.*s", LIMIT_SERVE_DETAIL, r->path);
	return t;
}

static void transfer(struct transfer *t, const struct sandbox *b)
{
	bool is_allowed = tool_is_allowed(b->row.spec, t->call.name);
	call_decide(&t->call, is_allowed ? path_denied(t->path) : "tool.not_allowed", LIMIT_SERVE_FILE_MS);
}

/* ---- getting ---- */

static void make_read(struct call *c, struct link *link)
{
	(void)call_job(c, link, FRAME_READ, slice_str(of(c)->path));
}

static void on_data(struct call *c, enum frame_kind kind, struct slice bytes)
{
	struct transfer *t = of(c);
	if (kind != FRAME_OUT)
		return;
	t->size += bytes.len;
	if (t->size > LIMIT_SERVE_FILE)
		call_fail_errno(c, EFBIG);
	else if (write(t->fd, bytes.ptr, bytes.len) != (ssize_t)bytes.len)
		call_fail_errno(c, ENOSPC);
}

static void on_got(struct call *c, struct job_end end)
{
	struct transfer *t = of(c);
	int fd = t->fd;
	size_t size = t->size;
	if (end.how != JOB_EXIT || lseek(fd, 0, SEEK_SET) != 0) {
		call_fail_errno(c, EIO);
		return;
	}
	t->fd = -1;
	struct request *r = call_leave(c);
	if (r)
		answer_file(r, fd, size);
	else
		close(fd);
}

static void get_from(struct sandbox *b, struct request *r)
{
	static const struct call_kind kind = {.make = make_read, .data = on_data, .succeed = on_got, .free = on_free};
	int fd = service_spool(r->service);
	if (fd < 0) {
		struct problem p = errno_problem(errno);
		answer_told(r, &p);
		return;
	}
	struct transfer *t = transfer_new(r, &kind, TOOL_READ, fd);
	if (t)
		transfer(t, b);
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
	struct problem p = errno_problem(errno);
	if (root >= 0)
		close(root);
	if (root < 0)
		answer_problem(r, 409, "its workspace was not kept");
	else if (fd < 0 || fstat(fd, &st) != 0)
		answer_told(r, &p);
	else
		answer_file(r, fd, (size_t)st.st_size);
}

/* There is no log any more that could tell of it, but what may not be read may not be read. */
static void get_ended(struct request *r, const json_t *spec)
{
	struct problem denial = tool_denial(TOOL_READ, "tool.not_allowed");
	if (tool_is_allowed(spec, tool_names[TOOL_READ]))
		get_kept(r);
	else
		answer_told(r, &denial);
}

void api_get_file(struct request *r)
{
	struct row row = {0};
	enum store_result result = store_get(r->service->store, r->sandbox, &row);
	bool is_kept = !state_is_open(row.state) && row.state != DELETED;
	struct sandbox *b = NULL;
	if (result != STORE_OK)
		answer_store(r, result);
	else if (is_kept)
		get_ended(r, row.spec);
	else
		b = api_ready_sandbox(r);
	row_free(&row);
	if (b)
		get_from(b, r);
}

/* ---- putting ---- */

static void send_more(struct call *c)
{
	struct transfer *t = of(c);
	char bytes[LIMIT_INSIDE_FRAME];
	while (t->fd >= 0 && job_has_room(c->job)) {
		ssize_t n = read(t->fd, bytes, sizeof(bytes));
		if (n > 0) {
			job_send(c->job, FRAME_DATA, slice_of(bytes, (size_t)n));
			call_touch(c);
			continue;
		}
		close(t->fd);
		t->fd = -1;
		if (n < 0) {
			call_fail_errno(c, EIO);
			return;
		}
		job_send(c->job, FRAME_END, SLICE_NONE);
	}
}

static void make_write(struct call *c, struct link *link)
{
	if (call_job(c, link, FRAME_WRITE, slice_str(of(c)->path)))
		send_more(c);
}

static void on_put(struct call *c, struct job_end end)
{
	if (end.how != JOB_EXIT) {
		call_fail_errno(c, EIO);
		return;
	}
	struct request *r = call_leave(c);
	if (r)
		answer_nothing(r);
}

void api_put_file(struct request *r)
{
	static const struct call_kind kind = {
		.make = make_write, .drained = send_more, .succeed = on_put, .free = on_free};
	struct sandbox *b = api_ready_sandbox(r);
	if (!b)
		return;
	if (lseek(r->spool, 0, SEEK_SET) != 0) {
		answer_problem(r, 503, "the file can't be read again");
		return;
	}
	int fd = r->spool;
	r->spool = -1;
	struct transfer *t = transfer_new(r, &kind, TOOL_WRITE, fd);
	if (t)
		transfer(t, b);
}
