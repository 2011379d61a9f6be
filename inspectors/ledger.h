/* The ledger: counters that hold over workers, their restarts and reloads, in memory that all workers share.
 *
 * An entry is found by a 64-bit key, which the caller makes from what it counts by (ledger_key). There are no locks: each
 * entry is changed by compare-and-swap. Every sandbox has entries of its own, LIMIT_LEDGER_ENTRIES of them: who fills them has no
 * room left, since to forget would be to allow, and nobody else notices. Entries that say no more than a new one would (a
 * full bucket, an old window) are taken over by other keys, a few seconds later.
 *
 * now_us is the caller's monotonic clock. Two workers may differ by a little; who is behind by up to a minute, or 60
 * periods of a budget, gets no more for it. No period is 0; one of more than 35 years counts as that. */
#ifndef CAGE_INSPECTORS_LEDGER_H
#define CAGE_INSPECTORS_LEDGER_H

#include "core/base/slice.h"
#include "core/base/status.h"

struct ledger;

/* Bytes of shared memory that a ledger needs. */
size_t ledger_size(void);

/* In memory of that size, zeroed. */
struct ledger *ledger_init(void *memory);

/* What an entry counts; part of the key, so that two kinds never meet. */
enum ledger_kind { LEDGER_RATE, LEDGER_OUT, LEDGER_NAMES };

/* One key of several parts, of that sandbox; "ab","c" and "a","bc" differ. Seeded at random when the ledger was made. A
 * sandbox gets its share when it is first named here, and keeps it; the first LIMIT_LEDGER_SANDBOXES have one to themselves,
 * later ones join one of them, always the same. */
uint64_t ledger_key(struct ledger *l, struct slice sandbox, enum ledger_kind kind, const struct slice *parts, size_t n);

/* A token bucket of `burst` tokens, filled with `per_period` tokens each `period_us`. Takes one; CAGE_ELIMIT when there
 * is none, with *wait_us until there will be one (UINT64_MAX: never, as with a burst of 0); CAGE_ENOMEM: no room. */
enum cage_status ledger_take(struct ledger *l, uint64_t key, uint64_t per_period, uint64_t period_us, uint64_t burst,
			     uint64_t now_us, uint64_t *wait_us) MUST_CHECK;

/* Adds n to what was spent in the last `period_us`, unless that would be more than `limit`: then CAGE_ELIMIT, nothing is added
 * and *wait_us says when n may fit. Spending of the period before counts by the share of it that lies within the last
 * period_us, so that there is no edge to spend twice at. A limit over LIMIT_LEDGER_SPEND counts as that. *wait_us is
 * UINT64_MAX when n is more than the limit. CAGE_ENOMEM: no room. */
enum cage_status ledger_spend(struct ledger *l, uint64_t key, uint64_t n, uint64_t limit, uint64_t period_us,
			      uint64_t now_us, uint64_t *wait_us) MUST_CHECK;

/* Notes a member and counts the distinct ones of the current period. An estimate, by one bit of 336 for each member: of
 * a few, two may count as one (of ten: once in eight times); the standard error is 5 % up to 600 and 8 % at 1000; it
 * counts to 2149 and no further. CAGE_ENOMEM: no room. */
enum cage_status ledger_distinct(struct ledger *l, uint64_t key, struct slice member, uint64_t period_us,
				 uint64_t now_us, unsigned *count) MUST_CHECK;

#endif
