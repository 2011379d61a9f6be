/* A bounded cache from bytes to a pointer that forgets what was used least recently: leaves, TLS sessions. */
#ifndef CAGE_BASE_LRU_H
#define CAGE_BASE_LRU_H

#include "core/base/slice.h"
#include "core/base/status.h"

struct lru;

/* Values that leave the cache are handed to drop. NULL without memory. */
struct lru *lru_new(size_t room, void (*drop)(void *value));
void lru_free(struct lru **l);

/* The value, now the most recent; or NULL. */
void *lru_get(struct lru *l, struct slice key);

/* Puts value in, in place of an old one of that key. Takes ownership of value, also on failure. */
enum cage_status lru_put(struct lru *l, struct slice key, void *value) MUST_CHECK;

/* Takes the value out without dropping it; NULL when it is not there. */
void *lru_take(struct lru *l, struct slice key);

size_t lru_count(const struct lru *l);

#endif
