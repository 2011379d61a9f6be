/* The table under the ledger: finds the entry of a key, and keeps or takes over entries. Only ledger.c uses it. */
#ifndef CAGE_INSPECTORS_LEDGER_TABLE_H
#define CAGE_INSPECTORS_LEDGER_TABLE_H

#include <stdatomic.h>

#include "core/base/limits.h"
#include "core/base/slice.h"

#define LEDGER_WORDS 7

/* One cache line: who owns it, and words to count in. */
struct ledger_entry {
	_Alignas(64) _Atomic uint64_t owner;
	_Atomic uint64_t words[LEDGER_WORDS];
};

struct ledger {
	uint64_t seed;
	_Atomic uint64_t sandboxes[LIMIT_LEDGER_SANDBOXES]; /* hash of who has that share; 0: nobody yet */
	struct ledger_entry entries[LIMIT_LEDGER_SANDBOXES][LIMIT_LEDGER_ENTRIES];
};

/* The share of a sandbox, by its hash. */
size_t ledger_share(struct ledger *l, uint64_t sandbox);

/* A key says in which share it is, below the tag. */
#define LEDGER_SHARE_SHIFT 16

static inline uint64_t ledger_key_in(uint64_t hash, size_t share)
{
	uint64_t mask = (uint64_t)(LIMIT_LEDGER_SANDBOXES - 1) << LEDGER_SHARE_SHIFT;
	return (hash & ~mask) | (uint64_t)share << LEDGER_SHARE_SHIFT;
}

/* An entry, and its owner word when it was looked at. */
struct ledger_place {
	struct ledger_entry *entry; /* NULL: there is none */
	uint64_t owner;
};

/* The entry of a key, made when there is none; all its words are then 0. Without one when there is no room. */
struct ledger_place ledger_find(struct ledger *l, uint64_t key, uint64_t now_us);

/* To be called before a word is changed to something that matters until then: the entry stays the key's. False: it was
 * changed meanwhile, find it again. */
bool ledger_keep(struct ledger_place p, uint64_t until_us);

#endif
