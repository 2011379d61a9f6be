/* Buckets by key for finding, and one list by age for forgetting. */
#include "proxy/pool.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/map.h"
#include "core/net/stream.h"
#include "proxy/upstream.h"

#define POOL_BUCKETS 256

struct pool {
	struct upstream *buckets[POOL_BUCKETS];
	struct upstream *newest, *oldest;
	size_t count;
	uint64_t seed;
	struct loop *loop;
	struct event *nap; /* set while one of them has not given its buffers back */
	struct metrics *metrics;
};

/* Not at once: one that is busy would need them again for the next request. */
static void let_rest(evutil_socket_t fd, short what, void *arg)
{
	struct pool *p = arg;
	uint64_t now = loop_now_us(p->loop);
	const struct timeval again = loop_ms(LIMIT_POOL_AWAKE_MS);
	(void)fd, (void)what;
	for (struct upstream *up = p->oldest; up; up = up->newer) {
		if (now - up->idle_since_us < (uint64_t)LIMIT_POOL_AWAKE_MS * 1000u) {
			event_add(p->nap, &again);
			return;
		}
		stream_rest(up->stream);
	}
}

struct pool *pool_new(struct loop *l, struct metrics *m)
{
	struct pool *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->seed = map_seed();
	p->loop = l;
	p->metrics = m;
	p->nap = evtimer_new(loop_base(l), let_rest, p);
	if (!p->nap)
		pool_free(&p);
	return p;
}

static struct upstream **bucket_of(struct pool *p, struct slice key)
{
	return &p->buckets[slice_hash(key, p->seed) % POOL_BUCKETS];
}

static struct slice key_of(const struct upstream *up)
{
	return slice_of(up->key, up->key_len);
}

void pool_remove(struct pool *p, struct upstream *up)
{
	if (up->prev)
		up->prev->next = up->next;
	else
		*bucket_of(p, key_of(up)) = up->next;
	if (up->next)
		up->next->prev = up->prev;
	if (up->newer)
		up->newer->older = up->older;
	else
		p->newest = up->older;
	if (up->older)
		up->older->newer = up->newer;
	else
		p->oldest = up->newer;
	up->next = up->prev = up->newer = up->older = NULL;
	p->count--;
	metric_set(&p->metrics->pool_idle, p->count);
}

static void drop(struct pool *p, struct upstream *up)
{
	pool_remove(p, up);
	upstream_close(&up);
}

void pool_put(struct pool *p, struct upstream *up)
{
	struct upstream **bucket = bucket_of(p, key_of(up));
	size_t same = 0;
	for (struct upstream *u = *bucket; u; u = u->next)
		same += slice_eq(key_of(u), key_of(up));
	if (same >= LIMIT_POOL_PER_ORIGIN) {
		upstream_close(&up);
		return;
	}
	if (p->count >= LIMIT_POOL_IDLE)
		drop(p, p->oldest);
	up->next = *bucket;
	if (up->next)
		up->next->prev = up;
	*bucket = up;
	up->older = p->newest;
	if (p->newest)
		p->newest->newer = up;
	else
		p->oldest = up;
	p->newest = up;
	p->count++;
	if (!evtimer_pending(p->nap, NULL)) {
		const struct timeval nap = loop_ms(LIMIT_POOL_AWAKE_MS);
		event_add(p->nap, &nap);
	}
	metric_set(&p->metrics->pool_idle, p->count);
}

struct upstream *pool_take(struct pool *p, struct slice key)
{
	struct upstream *up = *bucket_of(p, key);
	while (up && !slice_eq(key_of(up), key))
		up = up->next;
	if (up)
		pool_remove(p, up);
	return up;
}

void pool_expire(struct pool *p, uint64_t now_us)
{
	struct upstream *newer;
	for (struct upstream *up = p->oldest; up; up = newer) {
		newer = up->newer;
		bool too_old = now_us - up->idle_since_us > (uint64_t)LIMIT_POOL_IDLE_MS * 1000u;
		if (too_old || !generation_is_current(up->gen))
			drop(p, up);
	}
}

void pool_clear(struct pool *p)
{
	while (p->oldest)
		drop(p, p->oldest);
}

void pool_free(struct pool **pp)
{
	if (!*pp)
		return;
	pool_clear(*pp);
	if ((*pp)->nap)
		event_free((*pp)->nap);
	free(*pp);
	*pp = NULL;
}
