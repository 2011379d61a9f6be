/* Frames of the service, and what is done for each. */
#include "orchestrator/keeper/client.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/keeper/keeper.h"

#define LAST_ID 0x7fff

/* ---- its jobs ---- */

static struct task *find(struct keeper *k, uint16_t of)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (k->wire.tasks[i].heard && k->wire.tasks[i].of == of)
			return &k->wire.tasks[i];
	return NULL;
}

/* Jobs are held back while the service does not read: then what they have told is owed later. */
static void heard(struct keeper *k, struct task *t, const struct frame *f)
{
	if (t->of == 0) { /* who asked is gone */
		wire_took(k, t, f->payload.len);
		return;
	}
	if (f->kind != FRAME_OUT && f->kind != FRAME_ERR && f->kind != FRAME_DONE)
		return;
	client_send(k, f->kind, t->of, f->payload);
	if (client_is_clogged(&k->client))
		t->held += f->payload.len;
	else
		wire_took(k, t, f->payload.len);
}

static void release_held(struct keeper *k)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++) {
		struct task *t = &k->wire.tasks[i];
		size_t n = t->held;
		t->held = 0;
		if (t->heard && n > 0)
			wire_took(k, t, n);
	}
}

/* The keeper's own must find a place. */
static bool has_place(const struct wire *w)
{
	size_t n = 0;
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		n += w->tasks[i].heard == heard;
	return n < LIMIT_KEEPER_JOBS;
}

static void begin(struct keeper *k, const struct frame *f)
{
	struct task *t = has_place(&k->wire) ? wire_begin(k, heard, NULL) : NULL;
	if (!t) {
		client_refuse(k, f->id, EBUSY);
		return;
	}
	t->of = f->id;
	wire_send(k, f->kind, t->id, f->payload);
}

static void cancel_all(struct keeper *k)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++) {
		struct task *t = &k->wire.tasks[i];
		if (!t->heard || t->of == 0)
			continue;
		t->of = 0;
		wire_send(k, FRAME_CANCEL, t->id, SLICE_NONE);
	}
	release_held(k);
	fetch_kill_all(k);
	tools_forget(&k->tools);
	room_forget(&k->room);
}

/* ---- frames ---- */

static void go_on(struct keeper *k, const struct frame *f)
{
	struct task *t = find(k, f->id);
	if (t)
		wire_send(k, f->kind, t->id, f->payload);
	else
		fetch_go_on(k, f);
}

static bool is_new(struct keeper *k, const struct frame *f)
{
	int why = f->id == 0 || f->id > LAST_ID                    ? EINVAL
		  : !keeper_takes_jobs(k)                          ? EAGAIN
		  : find(k, f->id) || fetch_find(k, f->id) != NULL ? EEXIST
								   : 0;
	if (why != 0)
		client_refuse(k, f->id, why);
	return why == 0;
}

/* False: nobody who keeps to it says that. What is numbered 0 is the command's. */
static bool take(struct keeper *k, const struct frame *f)
{
	if (f->id == 0 && f->kind != FRAME_STOP && f->kind != FRAME_BEGIN)
		return false;
	switch (f->kind) {
	case FRAME_RUN:
	case FRAME_READ:
	case FRAME_WRITE:
	case FRAME_LIST:
		if (is_new(k, f))
			begin(k, f);
		return true;
	case FRAME_FETCH:
		if (is_new(k, f))
			fetch_begin(k, f);
		return true;
	case FRAME_TOOL:
		if (is_new(k, f))
			tools_tell(k, f);
		return true;
	case FRAME_RELOAD:
		if (is_new(k, f))
			room_reload(k, f->id);
		return true;
	case FRAME_DATA:
	case FRAME_END:
	case FRAME_CANCEL:
		go_on(k, f);
		return true;
	case FRAME_STOP:
		keeper_stop(k, slice_eq(f->payload, SLICE("deleted")));
		return true;
	case FRAME_BEGIN:
		keeper_begin(k);
		return true;
	case FRAME_ENV:
	case FRAME_STANDS:
	case FRAME_TAKE:
	case FRAME_CONNECT:
	case FRAME_USED:
	case FRAME_MORE:
	case FRAME_READY:
	case FRAME_OUT:
	case FRAME_ERR:
	case FRAME_DONE:
		break;
	}
	return false;
}

/* ---- the connection ---- */

static void disconnect(struct keeper *k)
{
	struct client *c = &k->client;
	if (c->fd < 0)
		return;
	fd_close(&c->fd);
	fifo_clear(&c->out);
	c->in.len = c->in.taken = 0;
	cancel_all(k);
}

static void read_some(struct keeper *k, void *arg, int fd, short events)
{
	struct client *c = arg;
	size_t room;
	(void)events;
	if (c->fd != fd)
		return;
	char *to = frame_room(&c->in, &room);
	ssize_t n = read(fd, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		disconnect(k);
		return;
	}
	frame_arrived(&c->in, (size_t)n);
	struct frame f;
	enum frame_result result = FRAME_PARTIAL;
	while (c->fd == fd && (result = frame_take(&c->in, &f)) == FRAME_TAKEN && take(k, &f))
		;
	if (c->fd == fd && result != FRAME_PARTIAL)
		disconnect(k);
}

static void write_some(struct keeper *k, void *arg, int fd, short events)
{
	struct client *c = arg;
	(void)events;
	while (c->fd == fd && c->out.len > 0) {
		struct slice front = fifo_front(&c->out);
		ssize_t n = send(fd, front.ptr, front.len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			disconnect(k);
			return;
		}
		fifo_drop(&c->out, (size_t)n);
	}
	if (!client_is_clogged(c))
		release_held(k);
}

bool client_is_clogged(const struct client *c)
{
	return c->out.len >= LIMIT_KEEPER_CLIENT_LOW;
}

/* A sandbox that does not keep to its windows must not make the keeper hold all that it says. */
void client_send(struct keeper *k, enum frame_kind kind, uint16_t id, struct slice payload)
{
	struct client *c = &k->client;
	char header[FRAME_HEADER];
	if (c->fd < 0)
		return;
	frame_header(header, kind, id, payload.len);
	if (c->out.len > LIMIT_KEEPER_CLIENT || fifo_put(&c->out, slice_of(header, sizeof(header))) != CAGE_OK ||
	    fifo_put(&c->out, payload) != CAGE_OK)
		disconnect(k);
}

void client_tell_ready(struct keeper *k)
{
	client_send(k, FRAME_READY, 0, k->result.began_us > 0 ? SLICE_NONE : FRAME_READY_WAITS);
}

void client_answer(struct keeper *k, uint16_t id, struct slice how)
{
	if (id != 0)
		client_send(k, FRAME_DONE, id, how);
}

void client_refuse(struct keeper *k, uint16_t id, int why)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "error %d", why);
	client_answer(k, id, slice_of(text, (size_t)n));
}

/* ---- listening ---- */

static void accept_one(struct keeper *k, void *arg, int fd, short events)
{
	struct client *c = arg;
	int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	(void)events;
	if (conn < 0)
		return;
	disconnect(k);
	c->fd = conn;
	if (k->state == KEEPER_STANDING)
		client_send(k, FRAME_STANDS, 0, SLICE_NONE);
	if (k->state >= KEEPER_RUNNING)
		client_tell_ready(k);
}

/* By a name in our own directory, which may be longer than that of a socket can be. */
bool client_listen(struct client *c)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "socket"};
	c->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(at.sun_path); /* the lock is ours: who has made it is gone */
	return c->listening >= 0 && bind(c->listening, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	       chmod(at.sun_path, 0600) == 0 && listen(c->listening, SOMAXCONN) == 0;
}

void client_watch(struct keeper *k)
{
	struct client *c = &k->client;
	short events = (short)((wire_is_clogged(&k->wire) ? 0 : POLLIN) | (c->out.len > 0 ? POLLOUT : 0));
	polls_add(&k->polls, c->listening, POLLIN, accept_one, c);
	polls_add(&k->polls, c->fd, (short)(events & POLLOUT), write_some, c);
	polls_add(&k->polls, c->fd, (short)(events & POLLIN), read_some, c);
}

void client_close(struct keeper *k)
{
	struct client *c = &k->client;
	const uint64_t until_us = clock_mono_us() + LIMIT_KEEPER_LAST_MS * 1000ull;
	while (c->fd >= 0 && c->out.len > 0 && clock_mono_us() < until_us) {
		struct pollfd p = {.fd = c->fd, .events = POLLOUT};
		if (poll(&p, 1, LIMIT_KEEPER_LAST_MS) <= 0)
			break;
		write_some(k, c, c->fd, POLLOUT);
	}
	disconnect(k);
	fd_close(&c->listening);
	unlink("socket");
}
