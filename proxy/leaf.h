/* A worker's leaves: kept ones at once, others from the signer, one question per name however many clients wait. */
#ifndef CAGE_PROXY_LEAF_H
#define CAGE_PROXY_LEAF_H

#include <openssl/x509.h>

#include "core/net/loop.h"
#include "core/base/reason.h"
#include "core/base/slice.h"
#include "proxy/metrics.h"

struct leaves;

/* A connection that waits; embedded in it. */
struct leaf_waiter {
	struct leaf_waiter *next;
	struct slice name; /* stays valid while waiting */
	/* reason REASON_NONE: ask leaf_get again, it is there now. */
	void (*done)(struct leaf_waiter *, enum reason why);
	bool waiting;
};

struct leaves *leaves_new(struct loop *l, int signer_fd, EVP_PKEY *key, struct metrics *m);
void leaves_free(struct leaves **l);

/* Another signer. What waits is told to try again later. */
void leaves_set_signer(struct leaves *l, int signer_fd);

/* The kept leaf, borrowed until the next call; or NULL. */
X509 *leaf_get(struct leaves *l, struct slice name);

/* Waits for the leaf. REASON_NONE: done will be called; else it won't (LIMIT_RATE, SIGNER_UNAVAILABLE). */
enum reason leaf_wait(struct leaves *l, struct leaf_waiter *w);
void leaf_cancel(struct leaves *l, struct leaf_waiter *w);

#endif
