/* The stream: events in, callbacks out. See stream.h for what it promises.
 *
 *	HANDSHAKE -> OPEN -> FINISHING -> CLOSED        a plain stream starts in OPEN
 *
 * Each wake-up moves a bounded number of bytes, then calls the owner once. Output is gathered and sent at the end of
 *the pass, so a response head and its first bytes leave in one record. */
#include "core/net/stream.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/net/stream_internal.h"

#define DIRECT_WRITE 8192 /* from here on bytes go to the socket without a copy */
#define WRITES_PER_WAKEUP 32

/* ---- events ---- */

static void on_event(evutil_socket_t fd, short what, void *arg);
static void on_again(evutil_socket_t fd, short what, void *arg);
static void on_timer(evutil_socket_t fd, short what, void *arg);
static void on_work(struct deferred *d);

bool stream_memory_is_short(const struct stream *s)
{
	return loop_streams(s->loop)->waiting > LIMIT_WAITING;
}

static bool wants_input(const struct stream *s)
{
	return s->reading == READ_OPEN && !stream_input_is_full(s) && !(s->is_held && stream_memory_is_short(s));
}

static size_t high_mark(const struct stream *s)
{
	return stream_memory_is_short(s) ? LIMIT_OUT_SHORT : s->ops->high;
}

static size_t low_mark(const struct stream *s)
{
	bool is_less = stream_memory_is_short(s) && s->ops->low > LIMIT_OUT_SHORT / 2;
	return is_less ? LIMIT_OUT_SHORT / 2 : s->ops->low;
}

static bool wants_output(const struct stream *s)
{
	return s->writing != WRITE_BROKEN && (s->out.len > 0 || s->writing == WRITE_ENDING);
}

/* Which events the stream waits for now. */
static short wanted_events(const struct stream *s)
{
	switch (s->state) {
	case STREAM_HANDSHAKE:
		return s->handshake_on;
	case STREAM_OPEN:
	case STREAM_FINISHING:
		return (short)((wants_input(s) ? s->read_on : 0) | (wants_output(s) ? s->write_on : 0));
	case STREAM_CLOSED:
		return 0;
	}
	return 0;
}

static void arm(struct event *ev, bool *armed, bool want)
{
	if (*armed == want)
		return;
	*armed = want;
	if (want)
		event_add(ev, NULL);
	else
		event_del(ev);
}

static void update_events(struct stream *s)
{
	const struct timeval at_once = {0};
	short want = wanted_events(s);
	arm(&s->ev_read, &s->read_armed, want & EV_READ);
	arm(&s->ev_write, &s->write_armed, want & EV_WRITE);
	if (!s->more_to_read || (s->state != STREAM_OPEN && s->state != STREAM_FINISHING) || !wants_input(s))
		return;
	/* Bytes that TLS has already taken off the socket raise no event. One that is made active would be handled in this
	 * pass, and again and again, while all others wait. */
	event_add(&s->ev_again, &at_once);
}

static uint64_t in_ms(const struct stream *s, unsigned ms)
{
	return loop_now_us(s->loop) + (uint64_t)ms * 1000u;
}

static void await_progress(struct stream *s)
{
	s->stall_us = in_ms(s, s->stall_ms);
	s->unsent = s->ops->unsent(s);
}

/* Runs while something waits that the peer does not take; only wrote() moves it. */
static void watch_stall(struct stream *s)
{
	bool waits = s->out.len > 0 && (s->clogged || s->state == STREAM_FINISHING);
	if (!waits || s->stall_ms == 0)
		s->stall_us = 0;
	else if (s->stall_us == 0)
		await_progress(s);
}

/* The socket is writable again only when much of its buffer is free: a slow reader takes some of it before that. */
static bool has_progress(const struct stream *s)
{
	return s->stall_us != 0 && s->ops->unsent(s) < s->unsent;
}

/* The deadline that comes first; 0: none. */
static uint64_t next_deadline(const struct stream *s)
{
	if (s->deadline_us == 0 || s->stall_us == 0)
		return s->deadline_us + s->stall_us;
	return s->deadline_us < s->stall_us ? s->deadline_us : s->stall_us;
}

static void set_timer(struct stream *s)
{
	watch_stall(s);
	uint64_t due = next_deadline(s);
	if (due == 0 || s->state == STREAM_CLOSED)
		return;
	if (s->timer_us != 0 && s->timer_us <= due)
		return; /* it fires before, and looks again then */
	uint64_t now = loop_now_us(s->loop);
	uint64_t wait = due > now ? due - now : 1;
	struct timeval tv = {.tv_sec = (time_t)(wait / 1000000u), .tv_usec = (suseconds_t)(wait % 1000000u)};
	s->timer_us = due;
	event_add(&s->ev_timer, &tv);
}

static void activity(struct stream *s)
{
	if (s->idle_ms)
		s->deadline_us = in_ms(s, s->idle_ms);
}

/* The peer's side has taken some of the output. */
static void wrote(struct stream *s)
{
	activity(s);
	if (s->stall_us)
		await_progress(s);
}

/* ---- moving bytes ---- */

static void read_ended(struct stream *s, enum cage_status why)
{
	if (s->reading != READ_OPEN)
		return;
	s->reading = READ_ENDED;
	s->end = why == CAGE_EOF && s->writing == WRITE_BROKEN ? s->broken : why; /* no clean end after that */
}

/* As much as may be read at once: when memory is short, what the owner might not take is to be little. */
static size_t read_room(const struct stream *s)
{
	size_t room = LIMIT_STREAM_IN - s->in.end;
	return stream_memory_is_short(s) && room > LIMIT_OUT_SHORT ? LIMIT_OUT_SHORT : room;
}

/* True when there is new input. */
static bool do_read(struct stream *s)
{
	unsigned reads = stream_memory_is_short(s) ? 1 : LIMIT_READS_PER_WAKEUP;
	size_t got = 0;
	s->more_to_read = true; /* unless a read below finds the end of it */
	for (unsigned i = 0; i < reads && wants_input(s); i++) {
		if (!stream_buffer_reserve(&s->in)) {
			read_ended(s, CAGE_ENOMEM);
			break;
		}
		enum cage_status st = CAGE_OK;
		size_t n = s->ops->read(s, s->in.data + s->in.end, read_room(s), &st);
		s->more_to_read = n > 0 && s->ops->maybe_more(s);
		s->in.end += n;
		got += n;
		if (n == 0 && st != CAGE_AGAIN)
			read_ended(s, st);
		if (!s->more_to_read)
			break;
	}
	if (s->writing == WRITE_BROKEN && !s->more_to_read)
		read_ended(s, s->broken);
	stream_buffer_release(&s->in);
	if (got > 0)
		activity(s);
	return got > 0;
}

static void end_our_side(struct stream *s)
{
	s->ops->end(s);
	s->ops->shut(s);
	s->writing = WRITE_ENDED;
	if (s->state == STREAM_FINISHING)
		stream_set_deadline(s, LIMIT_LINGER_MS); /* all is sent: from here on we only wait for the peer */
}

/* Worse than an end: news also for an owner who was told of the peer's clean end before. */
static void stream_broke(struct stream *s, enum cage_status why)
{
	if (s->reading == READ_TOLD && s->end == CAGE_EOF)
		s->reading = READ_OPEN;
	read_ended(s, why);
}

/* A peer that takes no more may have said why before: what it sent is read first, and then the stream is at its end. */
static void write_broken(struct stream *s, enum cage_status why)
{
	s->writing = WRITE_BROKEN;
	s->broken = why;
	fifo_clear(&s->out);
	if (s->reading == READ_OPEN && s->state == STREAM_OPEN)
		s->more_to_read = true;
	else
		stream_broke(s, why);
}

static size_t write_some(struct stream *s, struct slice piece, bool more_follows, enum cage_status *st)
{
	s->more_follows = more_follows;
	size_t n = s->ops->write(s, piece.ptr, piece.len, st);
	s->more_follows = false;
	return n;
}

static void do_flush(struct stream *s)
{
	if (s->state == STREAM_HANDSHAKE)
		return;
	for (unsigned i = 0; i < WRITES_PER_WAKEUP && s->out.len > 0; i++) {
		struct slice piece = fifo_front(&s->out);
		enum cage_status st = CAGE_OK;
		size_t n = write_some(s, piece, s->out.len > piece.len && i + 1 < WRITES_PER_WAKEUP, &st);
		if (n == 0) {
			if (st != CAGE_AGAIN)
				write_broken(s, st);
			return;
		}
		fifo_drop(&s->out, n);
		wrote(s);
	}
	if (s->out.len == 0 && s->writing == WRITE_ENDING)
		end_our_side(s);
}

static void free_at_end_of_pass(struct stream *s)
{
	s->state = STREAM_CLOSED;
	update_events(s);
	event_del(&s->ev_timer);
	event_del(&s->ev_again);
	loop_defer(s->loop, &s->work);
}

/* While finishing: throws input away within bounds, and closes once both sides have ended. */
static void finish_step(struct stream *s)
{
	s->drained += s->in.end - s->in.start;
	stream_buffer_drop(&s->in);
	bool sent = s->writing == WRITE_ENDED || s->writing == WRITE_BROKEN;
	if ((sent && s->reading != READ_OPEN) || s->writing == WRITE_BROKEN || s->drained > LIMIT_LINGER_BYTES ||
	    (s->reading != READ_OPEN && s->end != CAGE_EOF))
		free_at_end_of_pass(s);
}

/* Tells the owner what has changed. Any callback may close the stream. */
static void tell_owner(struct stream *s, bool new_input)
{
	if (s->state == STREAM_FINISHING) {
		finish_step(s);
		return;
	}
	if (new_input && s->state == STREAM_OPEN)
		s->cb->on_data(s, s->arg);
	if (s->clogged && s->out.len < low_mark(s) && s->state == STREAM_OPEN) {
		s->clogged = false;
		s->cb->on_drained(s, s->arg);
	}
	if (s->reading == READ_ENDED && (s->state == STREAM_OPEN || s->state == STREAM_HANDSHAKE)) {
		s->reading = READ_TOLD;
		s->cb->on_end(s, s->end, s->arg);
	}
}

static void do_handshake(struct stream *s)
{
	enum cage_status st = s->ops->handshake(s);
	if (st == CAGE_AGAIN)
		return;
	if (st != CAGE_OK) {
		s->writing = WRITE_BROKEN;
		read_ended(s, st);
		return;
	}
	s->state = STREAM_OPEN;
	s->more_to_read = SSL_has_pending(s->ssl);
	s->cb->on_ready(s, s->arg);
}

static void settle(struct stream *s, bool new_input)
{
	tell_owner(s, new_input);
	if (s->state == STREAM_CLOSED)
		return;
	update_events(s);
	set_timer(s);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	struct stream *s = arg;
	bool new_input = false;
	if (s->magic != STREAM_MAGIC)
		__builtin_trap();
	if (s->state == STREAM_CLOSED)
		return;
	if (s->state == STREAM_HANDSHAKE)
		do_handshake(s);
	if (s->state == STREAM_OPEN || s->state == STREAM_FINISHING) {
		if ((what & s->write_on) || s->out.len > 0)
			do_flush(s);
		if (what & s->read_on)
			new_input = do_read(s);
	}
	new_input |= s->tells_again;
	s->tells_again = false;
	if (s->state != STREAM_CLOSED)
		settle(s, new_input);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	const struct stream *s = arg;
	(void)what;
	on_event(fd, s->read_on, arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct stream *s = arg;
	s->timer_us = 0;
	uint64_t due = next_deadline(s);
	if (s->state == STREAM_CLOSED || due == 0)
		return;
	if (loop_now_us(s->loop) < due) {
		set_timer(s);
		return;
	}
	if (s->stall_us == due && has_progress(s)) {
		await_progress(s);
		set_timer(s);
		return;
	}
	s->deadline_us = s->stall_us = 0;
	if (s->state == STREAM_FINISHING) {
		if (s->out.len > 0)
			s->ops->harden(s);
		free_at_end_of_pass(s);
		return;
	}
	stream_broke(s, CAGE_ETIMEOUT);
	settle(s, false);
}

static void stream_destroy(struct stream *s)
{
	s->ops->free(s);
	stream_buffer_drop(&s->in);
	stream_buffer_drop(&s->pre);
	fifo_clear(&s->out);
	s->magic = 0;
	loop_streams(s->loop)->all--;
	loop_streams(s->loop)->sockets -= s->has_socket;
	free(s);
}

/* The end of a pass: send what was gathered, tell what a write has found, or free. */
static void on_work(struct deferred *d)
{
	struct stream *s = (struct stream *)(void *)((char *)d - offsetof(struct stream, work));
	if (s->state == STREAM_CLOSED) {
		stream_destroy(s);
		return;
	}
	if (s->state == STREAM_HANDSHAKE && s->handshake_on == 0)
		do_handshake(s);
	if (s->state != STREAM_CLOSED)
		do_flush(s);
	if (s->state != STREAM_CLOSED)
		settle(s, false);
}

/* ---- for transports ---- */

void stream_is_readable(struct stream *s)
{
	s->more_to_read = true;
	update_events(s);
}

void stream_is_writable(struct stream *s)
{
	if (s->write_armed)
		event_active(&s->ev_write, EV_WRITE, 0);
}

void stream_is_broken(struct stream *s, enum cage_status why)
{
	if (s->state == STREAM_CLOSED || s->writing == WRITE_ENDED || s->writing == WRITE_BROKEN)
		return;
	write_broken(s, why);
	update_events(s);
	loop_defer(s->loop, &s->work);
}

struct stream *stream_create(struct loop *l, int fd, const struct stream_ops *ops, const struct stream_cb *cb,
			     void *arg)
{
	struct stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->has_socket = fd >= 0;
	loop_streams(l)->all++;
	loop_streams(l)->sockets += s->has_socket;
	s->magic = STREAM_MAGIC;
	s->loop = l;
	s->fd = fd;
	s->ops = ops;
	s->cb = cb;
	s->arg = arg;
	s->state = STREAM_OPEN;
	s->read_on = EV_READ;
	s->write_on = EV_WRITE;
	s->work.run = on_work;
	s->out.total = &loop_streams(l)->waiting;
	event_assign(&s->ev_read, loop_base(l), fd, EV_READ | EV_PERSIST, on_event, s);
	event_assign(&s->ev_write, loop_base(l), fd, EV_WRITE | EV_PERSIST, on_event, s);
	evtimer_assign(&s->ev_timer, loop_base(l), on_timer, s);
	evtimer_assign(&s->ev_again, loop_base(l), on_again, s);
	update_events(s);
	return s;
}

/* ---- for owners ---- */

struct stream *stream_new(struct loop *l, int fd, const struct stream_cb *cb, void *arg)
{
	struct stream *s = stream_create(l, fd, &stream_plain_ops, cb, arg);
	if (!s)
		close(fd);
	return s;
}

void stream_set_owner(struct stream *s, const struct stream_cb *cb, void *arg)
{
	s->cb = cb;
	s->arg = arg;
}

void stream_start_tls(struct stream *s, SSL *ssl, bool server)
{
	if (s->ops != &stream_plain_ops)
		__builtin_trap(); /* TLS needs a socket of its own */
	s->ssl = ssl;
	s->ops = &stream_tls_ops;
	s->state = STREAM_HANDSHAKE;
	s->handshake_on = 0;
	s->pre = s->in;
	s->in = (struct stream_buffer){.cleanses = s->pre.cleanses};
	stream_buffer_release(&s->pre);
	if (server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	if (!stream_tls_attach(s, ssl)) {
		s->writing = WRITE_BROKEN;
		read_ended(s, CAGE_ENOMEM);
	}
	update_events(s);
	loop_defer(s->loop, &s->work);
}

void stream_resume_handshake(struct stream *s)
{
	if (s->state == STREAM_HANDSHAKE)
		loop_defer(s->loop, &s->work);
}

SSL *stream_ssl(struct stream *s)
{
	return s->ssl;
}

void stream_cleanse_input(struct stream *s)
{
	s->in.cleanses = true;
}

void stream_rest(struct stream *s)
{
	if (s->ssl)
		SSL_free_buffers(s->ssl);
}

struct slice stream_input(const struct stream *s)
{
	return s->in.data ? slice_of(s->in.data + s->in.start, s->in.end - s->in.start) : SLICE_NONE;
}

void stream_consume(struct stream *s, size_t n)
{
	s->in.start += n;
	stream_buffer_release(&s->in);
	if (s->state == STREAM_OPEN)
		update_events(s);
}

void stream_tell_again(struct stream *s)
{
	const struct timeval at_once = {0};
	s->tells_again = true;
	event_add(&s->ev_again, &at_once);
}

bool stream_input_is_full(const struct stream *s)
{
	return s->in.data && s->in.end - s->in.start >= LIMIT_STREAM_IN;
}

bool stream_has_ended(const struct stream *s)
{
	return s->reading != READ_OPEN;
}

enum cage_status stream_end_of(const struct stream *s)
{
	return s->end;
}

/* As much as the socket takes at once; what is left goes into the queue. */
static struct slice write_direct(struct stream *s, struct slice bytes)
{
	for (unsigned i = 0; i < WRITES_PER_WAKEUP && bytes.len >= DIRECT_WRITE; i++) {
		enum cage_status st = CAGE_OK;
		size_t n = write_some(s, bytes, bytes.len > FIFO_BLOCK, &st);
		if (n == 0) {
			if (st != CAGE_AGAIN)
				write_broken(s, st);
			break;
		}
		wrote(s);
		bytes = slice_from(bytes, n);
	}
	return bytes;
}

static void queued(struct stream *s)
{
	if (s->out.len > high_mark(s))
		s->clogged = true;
	loop_defer(s->loop, &s->work);
}

void stream_write(struct stream *s, struct slice bytes)
{
	if (s->writing != WRITE_OPEN || bytes.len == 0)
		return;
	if (s->out.len == 0 && s->state == STREAM_OPEN)
		bytes = write_direct(s, bytes);
	if (s->writing == WRITE_OPEN && fifo_put(&s->out, bytes) != CAGE_OK)
		write_broken(s, CAGE_ENOMEM);
	queued(s);
}

void stream_write_secret(struct stream *s, struct slice bytes)
{
	if (s->writing != WRITE_OPEN)
		return;
	s->out.carries_secrets = true;
	if (fifo_put(&s->out, bytes) != CAGE_OK)
		write_broken(s, CAGE_ENOMEM);
	queued(s);
}

size_t stream_write_block(struct stream *s, struct fifo *from, size_t max)
{
	size_t n = fifo_move_block(&s->out, from, max);
	if (s->writing != WRITE_OPEN)
		fifo_clear(&s->out); /* nobody will send it */
	queued(s);
	return n;
}

bool stream_flush(struct stream *s)
{
	do_flush(s);
	if (s->writing == WRITE_BROKEN)
		loop_defer(s->loop, &s->work); /* the owner hears of it there */
	return s->out.len == 0;
}

bool stream_is_clogged(const struct stream *s)
{
	return s->clogged;
}

void stream_hold(struct stream *s, bool is_held)
{
	s->is_held = is_held;
	if (s->state == STREAM_OPEN)
		update_events(s);
}

size_t stream_unsent(const struct stream *s)
{
	return s->out.len;
}

void stream_end(struct stream *s)
{
	if (s->writing != WRITE_OPEN)
		return;
	s->writing = WRITE_ENDING;
	loop_defer(s->loop, &s->work);
}

void stream_set_deadline(struct stream *s, unsigned ms)
{
	s->idle_ms = 0;
	s->deadline_us = ms ? in_ms(s, ms) : 0;
	set_timer(s);
}

void stream_set_idle(struct stream *s, unsigned ms)
{
	s->idle_ms = ms;
	s->deadline_us = ms ? in_ms(s, ms) : 0;
	set_timer(s);
}

void stream_set_stall(struct stream *s, unsigned ms)
{
	s->stall_ms = ms;
	s->stall_us = 0;
	set_timer(s);
}

void stream_close(struct stream **sp)
{
	struct stream *s = *sp;
	if (!s)
		return;
	*sp = NULL;
	if (s->state == STREAM_OPEN && s->writing == WRITE_OPEN && s->out.len == 0)
		s->ops->end(s); /* a clean end only after all of it */
	free_at_end_of_pass(s);
}

void stream_reset(struct stream **sp)
{
	struct stream *s = *sp;
	if (!s)
		return;
	s->ops->harden(s);
	s->writing = WRITE_BROKEN;
	stream_close(sp);
}

void stream_finish(struct stream **sp)
{
	struct stream *s = *sp;
	if (!s)
		return;
	if (s->state == STREAM_HANDSHAKE) {
		stream_close(sp);
		return;
	}
	*sp = NULL;
	s->state = STREAM_FINISHING;
	stream_buffer_drop(&s->in);
	if (s->writing == WRITE_OPEN)
		s->writing = WRITE_ENDING;
	if (s->stall_ms == 0)
		s->stall_ms = LIMIT_STALL_MS;
	stream_set_deadline(s, LIMIT_FINISH_MS); /* in all, however often the peer takes a little */
	update_events(s);
	loop_defer(s->loop, &s->work);
}

size_t stream_count(struct loop *l)
{
	return loop_streams(l)->all;
}

size_t stream_waiting(struct loop *l)
{
	return loop_streams(l)->waiting;
}

size_t stream_sockets(struct loop *l)
{
	return loop_streams(l)->sockets;
}
