/* One pass: libevent's callbacks, then the deferred queue until it is empty. */
#include "core/net/loop.h"

#include <stdlib.h>

#include "core/base/clock.h"

struct loop {
	struct event_base *base;
	struct deferred *first, **last;
	uint64_t now_us; /* 0: not read in this pass */
	bool stopped;
	struct loop_streams streams;
};

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->base = event_base_new();
	if (!l->base) {
		free(l);
		return NULL;
	}
	l->last = &l->first;
	return l;
}

static void run_deferred(struct loop *l)
{
	while (l->first) {
		struct deferred *d = l->first;
		l->first = d->next;
		if (!l->first)
			l->last = &l->first;
		d->queued = false;
		d->run(d);
	}
}

void loop_free(struct loop **lp)
{
	if (!*lp)
		return;
	run_deferred(*lp);
	event_base_free((*lp)->base);
	free(*lp);
	*lp = NULL;
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

void loop_once(struct loop *l)
{
	l->now_us = 0;
	event_base_loop(l->base, EVLOOP_ONCE);
	run_deferred(l);
}

void loop_run(struct loop *l)
{
	l->stopped = false;
	run_deferred(l);
	while (!l->stopped)
		loop_once(l);
}

void loop_stop(struct loop *l)
{
	l->stopped = true;
	event_base_loopbreak(l->base);
}

void loop_defer(struct loop *l, struct deferred *d)
{
	if (d->queued)
		return;
	d->queued = true;
	d->next = NULL;
	*l->last = d;
	l->last = &d->next;
}

void loop_undefer(struct loop *l, struct deferred *d)
{
	if (!d->queued)
		return;
	struct deferred **link = &l->first;
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	if (!*link)
		l->last = link;
	d->queued = false;
}

struct loop_streams *loop_streams(struct loop *l)
{
	return &l->streams;
}

uint64_t loop_now_us(struct loop *l)
{
	if (l->now_us == 0)
		l->now_us = clock_mono_us();
	return l->now_us;
}
