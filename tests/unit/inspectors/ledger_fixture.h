/* A ledger in memory that forked processes share, and the plainest ways to use it. */
#ifndef CAGE_TESTS_LEDGER_FIXTURE_H
#define CAGE_TESTS_LEDGER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "inspectors/ledger.h"

#define S UINT64_C(1000000) /* microseconds */
#define MINUTE (60 * S)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define NEVER UINT64_MAX

static inline void *shared_new(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	return memory;
}

static inline struct ledger *ledger_new(void)
{
	return ledger_init(shared_new(ledger_size()));
}

static inline void ledger_free(struct ledger *l)
{
	munmap(l, ledger_size());
}

static inline uint64_t key_of_sandbox(struct ledger *l, uint64_t sandbox, enum ledger_kind kind, uint64_t number)
{
	struct slice part = slice_of(&number, sizeof(number));
	return ledger_key(l, slice_of(&sandbox, sizeof(sandbox)), kind, &part, 1);
}

/* Of one sandbox, the same for all. */
static inline uint64_t key_of(struct ledger *l, enum ledger_kind kind, uint64_t number)
{
	return key_of_sandbox(l, 0, kind, number);
}

/* How many of `tries` tokens there are at one moment. */
static inline unsigned take_many(struct ledger *l, uint64_t key, uint64_t per_period, uint64_t period_us,
				 uint64_t burst, uint64_t now_us, unsigned tries)
{
	unsigned taken = 0;
	uint64_t wait;
	for (unsigned i = 0; i < tries; i++)
		taken += ledger_take(l, key, per_period, period_us, burst, now_us, &wait) == CAGE_OK;
	return taken;
}

#endif
