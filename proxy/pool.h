/* Idle upstream connections, to be used again for the same key (see struct upstream). After LIMIT_POOL_AWAKE_MS they give
 * their buffers back. */
#ifndef CAGE_PROXY_POOL_H
#define CAGE_PROXY_POOL_H

#include "core/base/slice.h"
#include "core/net/loop.h"
#include "proxy/metrics.h"

struct pool;
struct upstream;

struct pool *pool_new(struct loop *l, struct metrics *m);

/* Closes all that is in it. */
void pool_clear(struct pool *p);
void pool_free(struct pool **p);

/* Takes an idle connection over; the oldest one makes room. */
void pool_put(struct pool *p, struct upstream *up);

/* The one used last, no longer in the pool; or NULL. */
struct upstream *pool_take(struct pool *p, struct slice key);

/* Takes this one out: it has ended by itself. */
void pool_remove(struct pool *p, struct upstream *up);

/* Closes what has been idle for longer than LIMIT_POOL_IDLE_MS, and all whose policy holds no longer. */
void pool_expire(struct pool *p, uint64_t now_us);

#endif
