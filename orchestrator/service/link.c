/* Frames in, frames out, and the table of jobs. */
#include "orchestrator/service/link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LAST_ID 0x7fff
#define LAST_ERRNO 4095 /* of the kernel */

struct link_job {
	struct link_job *next;
	struct link *link;
	uint16_t id;
	struct job_events events; /* without any: it is forgotten */
	void *arg;
};

struct link {
	struct bufferevent *bev;
	struct link_events events;
	void *arg;
	struct link_job *jobs;
	size_t n_jobs;
	uint16_t last_id;
	bool failed;
	struct frame_reader in;
};

/* ---- jobs ---- */

static struct link_job *find(const struct link *l, uint16_t id)
{
	for (struct link_job *j = l->jobs; j; j = j->next)
		if (j->id == id)
			return j;
	return NULL;
}

static void take_out(struct link *l, const struct link_job *j)
{
	struct link_job **at = &l->jobs;
	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
	l->n_jobs--;
}

static void end_job(struct link *l, struct link_job *j, struct job_end end)
{
	take_out(l, j);
	if (j->events.done)
		j->events.done(j->arg, end);
	free(j);
}

static void put_frame(struct link *l, enum frame_kind kind, uint16_t id, struct slice payload)
{
	char header[FRAME_HEADER];
	frame_header(header, kind, id, payload.len);
	if (bufferevent_write(l->bev, header, sizeof(header)) != 0 ||
	    (payload.len > 0 && bufferevent_write(l->bev, payload.ptr, payload.len) != 0))
		l->failed = true;
}

void link_send(struct link *l, enum frame_kind kind, struct slice payload)
{
	put_frame(l, kind, 0, payload);
}

static uint16_t new_id(struct link *l)
{
	do
		l->last_id = l->last_id >= LAST_ID ? 1 : (uint16_t)(l->last_id + 1);
	while (find(l, l->last_id));
	return l->last_id;
}

bool link_has_place(const struct link *l)
{
	return l->n_jobs < LIMIT_SERVE_JOBS;
}

struct link_job *link_begin(struct link *l, enum frame_kind kind, struct slice payload, const struct job_events *events,
			    void *arg)
{
	struct link_job *j = link_has_place(l) && payload.len <= LIMIT_INSIDE_FRAME ? calloc(1, sizeof(*j)) : NULL;
	if (!j)
		return NULL;
	*j = (struct link_job){.next = l->jobs, .link = l, .id = new_id(l), .events = *events, .arg = arg};
	l->jobs = j;
	l->n_jobs++;
	put_frame(l, kind, j->id, payload);
	return j;
}

void job_send(struct link_job *j, enum frame_kind kind, struct slice payload)
{
	put_frame(j->link, kind, j->id, payload);
}

bool job_has_room(const struct link_job *j)
{
	return evbuffer_get_length(bufferevent_get_output(j->link->bev)) < LIMIT_SERVE_UNSENT;
}

void job_forget(struct link_job *j)
{
	j->events = (struct job_events){0};
	j->arg = NULL;
	job_send(j, FRAME_CANCEL, SLICE_NONE);
}

/* ---- frames ---- */

struct job_end job_end_parse(struct slice payload)
{
	static const struct {
		struct slice how;
		uint64_t most;
	} ends[] = {[JOB_EXIT] = {WORD("exit"), UINT8_MAX},
		    [JOB_SIGNAL] = {WORD("signal"), _NSIG - 1},
		    [JOB_ERROR] = {WORD("error"), LAST_ERRNO}};
	uint64_t n;
	struct slice how = slice_cut(&payload, ' ');
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (slice_eq(how, ends[i].how) && slice_to_u64(payload, ends[i].most, &n) && (n > 0 || i == JOB_EXIT))
			return (struct job_end){(enum job_how)i, (int)n};
	return (struct job_end){JOB_ERROR, EPROTO};
}

static void take_frame(struct link *l, const struct frame *f)
{
	struct link_job *j = f->id != 0 ? find(l, f->id) : NULL;
	if (f->id == 0 && f->kind == FRAME_READY)
		l->events.ready(l->arg, !slice_eq(f->payload, FRAME_READY_WAITS));
	else if (f->id == 0 && f->kind == FRAME_STANDS && l->events.stands)
		l->events.stands(l->arg);
	else if (f->id == 0 && f->kind == FRAME_DONE)
		l->events.ended(l->arg, job_end_parse(f->payload));
	else if (j && f->kind == FRAME_DONE)
		end_job(l, j, job_end_parse(f->payload));
	else if (j && (f->kind == FRAME_OUT || f->kind == FRAME_ERR) && j->events.data)
		j->events.data(j->arg, f->kind, f->payload);
}

static void end_jobs(struct link *l)
{
	while (l->jobs)
		end_job(l, l->jobs, (struct job_end){JOB_ERROR, EPIPE});
}

static void fail(struct link *l)
{
	bufferevent_disable(l->bev, EV_READ | EV_WRITE);
	end_jobs(l);
	l->events.closed(l->arg);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct link *l = arg;
	enum frame_result result = FRAME_PARTIAL;
	struct frame f;
	size_t room;
	while (evbuffer_get_length(bufferevent_get_input(bev)) > 0) {
		char *to = frame_room(&l->in, &room);
		int n = evbuffer_remove(bufferevent_get_input(bev), to, room);
		frame_arrived(&l->in, n > 0 ? (size_t)n : 0);
		while ((result = frame_take(&l->in, &f)) == FRAME_TAKEN)
			take_frame(l, &f);
		if (result == FRAME_BROKEN || l->failed) {
			fail(l);
			return;
		}
	}
}

static void on_write(struct bufferevent *bev, void *arg)
{
	struct link *l = arg;
	(void)bev;
	struct link_job *next;
	for (struct link_job *j = l->jobs; j; j = next) {
		next = j->next;
		if (j->events.drained)
			j->events.drained(j->arg);
	}
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		fail(arg);
}

/* ---- the connection ---- */

static int connect_to(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(to.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

struct link *link_open(struct event_base *base, const char *path, const struct link_events *events, void *arg)
{
	int fd = connect_to(path);
	if (fd < 0)
		return NULL;
	struct link *l = calloc(1, sizeof(*l));
	struct bufferevent *bev = l ? bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
	if (!bev) {
		close(fd);
		free(l);
		errno = ENOMEM;
		return NULL;
	}
	l->bev = bev;
	l->events = *events;
	l->arg = arg;
	bufferevent_setcb(bev, on_read, on_write, on_event, l);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	return l;
}

void link_close(struct link **l)
{
	if (!*l)
		return;
	end_jobs(*l);
	bufferevent_free((*l)->bev);
	free(*l);
	*l = NULL;
}

pid_t link_keeper(const struct link *l)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	int rc = getsockopt(bufferevent_getfd(l->bev), SOL_SOCKET, SO_PEERCRED, &who, &len);
	return rc == 0 ? who.pid : 0;
}
