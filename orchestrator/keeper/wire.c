/* Frames in both directions, without ever waiting. */
#include "orchestrator/keeper/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/keeper/keeper.h"

/* ---- jobs ---- */

static struct task *find(struct wire *w, uint16_t id)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (w->tasks[i].heard && w->tasks[i].id == id)
			return &w->tasks[i];
	return NULL;
}

static struct task *begin(struct wire *w, task_heard *heard, void *arg, uint16_t id)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (!w->tasks[i].heard) {
			w->tasks[i] = (struct task){.heard = heard, .arg = arg, .id = id};
			return &w->tasks[i];
		}
	return NULL;
}

bool wire_has_room(const struct wire *w)
{
	size_t n = 0;
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		n += w->tasks[i].heard != NULL;
	return n < LIMIT_INSIDE_JOBS - LIMIT_KEEPER_JOBS;
}

struct task *wire_begin(struct keeper *k, task_heard *heard, void *arg)
{
	struct wire *w = &k->wire;
	do
		w->last_id++;
	while (w->last_id == 0 || find(w, w->last_id)); /* there are fewer tasks than numbers */
	return begin(w, heard, arg, w->last_id);
}

struct task *wire_begin_command(struct keeper *k, task_heard *heard)
{
	return begin(&k->wire, heard, NULL, 0);
}

void wire_took(struct keeper *k, struct task *t, size_t n)
{
	t->owed += n;
	uint32_t more = (uint32_t)t->owed;
	if (t->owed < LIMIT_INSIDE_WINDOW / 2)
		return;
	t->owed = 0;
	wire_send(k, FRAME_MORE, t->id, slice_of(&more, sizeof(more)));
}

/* ---- to the room ---- */

/* Where it is one socket with the other direction, that one is still open. */
static void end_in(struct wire *w)
{
	if (w->in >= 0)
		shutdown(w->in, SHUT_WR);
	fd_close(&w->in);
}

void wire_send(struct keeper *k, enum frame_kind kind, uint16_t id, struct slice payload)
{
	struct wire *w = &k->wire;
	char header[FRAME_HEADER];
	if (w->in < 0 || k->state == KEEPER_ENDING)
		return;
	if (w->to.len == 0)
		w->moved_us = clock_mono_us();
	frame_header(header, kind, id, payload.len);
	if (fifo_put(&w->to, slice_of(header, sizeof(header))) == CAGE_OK && fifo_put(&w->to, payload) == CAGE_OK)
		return;
	end_in(w); /* half a frame is none */
	keeper_finish(k, RESULT_FAILED, "keeper.failed", "no memory");
}

static void write_some(struct keeper *k, void *arg, int fd, short events)
{
	struct wire *w = arg;
	(void)events;
	while (w->in == fd && w->to.len > 0) {
		struct slice front = fifo_front(&w->to);
		ssize_t n = write(fd, front.ptr, front.len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) { /* cage-inside is gone, and the room with it */
			end_in(w);
			fifo_clear(&w->to);
			return;
		}
		fifo_drop(&w->to, (size_t)n);
		w->moved_us = clock_mono_us();
	}
	if (k->state == KEEPER_LEAVING && w->in == fd) /* it ends when it has read all */
		end_in(w);
}

int wire_patience(const struct wire *w)
{
	if (w->in < 0 || w->to.len == 0)
		return -1;
	uint64_t waited_ms = (clock_mono_us() - w->moved_us) / 1000;
	return waited_ms < LIMIT_KEEPER_STALL_MS ? (int)(LIMIT_KEEPER_STALL_MS - waited_ms) : 0;
}

/* ---- from the room ---- */

static void take(struct keeper *k, const struct frame *f)
{
	struct task *t = find(&k->wire, f->id);
	uint64_t used;
	if (f->kind == FRAME_READY)
		keeper_is_ready(k);
	else if (f->kind == FRAME_USED && slice_to_u64(f->payload, INT64_MAX, &used))
		keeper_is_full(k, used);
	if (!t)
		return;
	struct task gone = *t;
	task_heard *heard = t->heard;
	if (f->kind == FRAME_DONE) {
		*t = (struct task){0};
		t = &gone;
	}
	heard(k, t, f);
}

static enum frame_result take_all(struct keeper *k)
{
	struct frame f;
	enum frame_result result = FRAME_TAKEN;
	while ((result = frame_take(&k->wire.from, &f)) == FRAME_TAKEN)
		take(k, &f);
	return result;
}

/* False: there is no more now, or never. */
static bool read_once(struct keeper *k)
{
	struct wire *w = &k->wire;
	size_t room;
	char *to = frame_room(&w->from, &room);
	ssize_t n = read(w->out, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		fd_close(&w->out);
		return false;
	}
	frame_arrived(&w->from, (size_t)n);
	if (take_all(k) != FRAME_BROKEN)
		return w->out >= 0;
	wire_close(w);
	keeper_finish(k, RESULT_FAILED, "room.failed", "cage-inside said what it never says");
	return false;
}

static void read_some(struct keeper *k, void *arg, int fd, short events)
{
	struct wire *w = arg;
	(void)events;
	for (int i = 0; i < LIMIT_KEEPER_READS && w->out == fd; i++)
		if (!read_once(k))
			return;
}

/* A pipe or socket holds less. */
void wire_drain(struct keeper *k)
{
	for (int i = 0; i < LIMIT_INSIDE_REST && k->wire.out >= 0; i++)
		if (!read_once(k))
			return;
}

/* ---- all of it ---- */

void wire_open(struct wire *w, int in, int out)
{
	w->in = in;
	w->out = out;
}

void wire_close(struct wire *w)
{
	fd_close(&w->in);
	fd_close(&w->out);
	fifo_clear(&w->to);
}

void wire_watch(struct keeper *k)
{
	polls_add(&k->polls, k->wire.out, POLLIN, read_some, &k->wire);
	polls_add(&k->polls, k->wire.in, k->wire.to.len > 0 || k->state == KEEPER_LEAVING ? POLLOUT : 0, write_some,
		  &k->wire);
}

/* ---- the end of a job ---- */

bool done_parse(struct slice payload, enum done_how *how, uint64_t *number)
{
	static const struct slice words[] = {
		[DONE_EXIT] = WORD("exit "), [DONE_SIGNAL] = WORD("signal "), [DONE_ERROR] = WORD("error ")};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (slice_starts(payload, words[i])) {
			*how = (enum done_how)i;
			return slice_to_u64(slice_from(payload, words[i].len), UINT8_MAX, number);
		}
	return false;
}

bool done_is_good(const struct frame *f, int *why)
{
	enum done_how how;
	uint64_t number;
	*why = EPROTO;
	if (!done_parse(f->payload, &how, &number))
		return false;
	if (how == DONE_ERROR)
		*why = (int)number;
	return how == DONE_EXIT && number == 0;
}
