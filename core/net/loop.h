/* The event loop of a process: libevent, plus work that is put off to the end of a pass. Nothing is freed while
 * callbacks run: x_close() functions unhook and defer, so no callback ever meets freed memory. */
#ifndef CAGE_NET_LOOP_H
#define CAGE_NET_LOOP_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "core/base/status.h"

struct loop;

/* Work for the end of this pass; embedded in its owner. */
struct deferred {
	void (*run)(struct deferred *);
	struct deferred *next;
	bool queued;
};

static inline struct timeval loop_ms(unsigned ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

struct loop *loop_new(void);

/* What was put off is done first. */
void loop_free(struct loop **l);
struct event_base *loop_base(struct loop *l);

/* Runs until loop_stop. */
void loop_run(struct loop *l);

/* Runs one pass: waits for events, handles them, then the deferred work. For tests. */
void loop_once(struct loop *l);
void loop_stop(struct loop *l);

/* Runs d at the end of this pass; does nothing when it is queued already. Work deferred meanwhile runs in the same
 * pass. */
void loop_defer(struct loop *l, struct deferred *d);

/* Takes it out again. */
void loop_undefer(struct loop *l, struct deferred *d);

/* How many streams live on this loop, how many of them have a socket, and how many bytes wait in all of them to be sent
 * or, between two in memory, to be read; stream.c keeps the count. */
struct loop_streams {
	size_t all, sockets, waiting;
};

struct loop_streams *loop_streams(struct loop *l);

/* Monotonic time of this pass, read once. */
uint64_t loop_now_us(struct loop *l);

#endif
