/* A seat: who may come, and under which policy. The master fills seats and tells each change to the workers, who have the
 * same list. Seat 0 is nobody's own: its policy is for all who have no other. */
#ifndef CAGE_PROC_SEAT_H
#define CAGE_PROC_SEAT_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/slice.h"

struct policy;

#define SEAT_PROOF 32 /* bytes */

struct seat {
	uint64_t gen; /* of its last change; 0: there was none */
	char id[LIMIT_SANDBOX];
	size_t id_len;                   /* 0: nobody sits here */
	unsigned char proof[SEAT_PROOF]; /* what a client has to show comes to this (proxy/auth.h) */
	const struct policy *policy;     /* at the same address in every process; NULL: that of seat 0 */
	uint64_t policy_gen;             /* its generation */
	uint32_t slot;                   /* where it is (policy_store.h), ... */
	uint64_t size;                   /* ... and its bytes */
};

static inline struct slice seat_id(const struct seat *s)
{
	return slice_of(s->id, s->id_len);
}

#endif
