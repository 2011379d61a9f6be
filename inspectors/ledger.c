/* What the ledger counts: token buckets, budgets and distinct members. Each change is one compare-and-swap of a word
 * that says by itself what time it is about; who finds a word changed under his hands starts again (CAGE_AGAIN in
 * here). ledger_table.c has the entries in which the words lie. */
#include "inspectors/ledger.h"

#include "core/base/map.h"
#include "inspectors/ledger_table.h"

#define LONGEST (UINT64_C(1) << 50) /* microseconds, 35 years: longer periods count as this */

size_t ledger_size(void)
{
	return sizeof(struct ledger);
}

struct ledger *ledger_init(void *memory)
{
	struct ledger *l = memory;
	l->seed = map_seed();
	return l;
}

uint64_t ledger_key(struct ledger *l, struct slice sandbox, enum ledger_kind kind, const struct slice *parts, size_t n)
{
	uint64_t who = slice_hash(sandbox, l->seed);
	uint64_t key = slice_hash(slice_of(&kind, sizeof(kind)), who);
	for (size_t i = 0; i < n; i++)
		key = slice_hash(parts[i], key);
	return ledger_key_in(key, ledger_share(l, who));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- token buckets ----
 *
 * One word: the time at which the bucket will be full. A token moves it on by the time in which one comes back. In
 * ticks, so that the rounding, which is always up, is small for high rates too. */

#define TICK_SHIFT 12                            /* microseconds to ticks */
#define DEEPEST (LONGEST << TICK_SHIFT)          /* of a bucket */
#define SLACK (UINT64_C(60000000) << TICK_SHIFT) /* no two workers' clocks are that far apart */

struct bucket {
	uint64_t token; /* ticks in which one comes back, */
	uint64_t all;   /* all of them, */
	uint64_t rest;  /* and all but one */
};

static uint64_t tokens(uint64_t n, uint64_t token)
{
	return n > DEEPEST / token ? DEEPEST : n * token;
}

static struct bucket bucket_of(uint64_t per_period, uint64_t period_us, uint64_t burst)
{
	uint64_t period = smaller(period_us, LONGEST) << TICK_SHIFT;
	struct bucket b = {.token = larger(period / per_period + (period % per_period > 0), 1)};
	b.all = tokens(burst, b.token);
	b.rest = tokens(burst - 1, b.token);
	return b;
}

/* now: in ticks. */
static enum cage_status bucket_take(struct ledger_place p, const struct bucket *b, uint64_t now, uint64_t *wait_us)
{
	_Atomic uint64_t *word = &p.entry->words[0];
	uint64_t full = atomic_load(word);
	uint64_t from = larger(full, now);
	if (from - now > b->all + SLACK) { /* the rate was lower before a reload: empty is the least it can be */
		atomic_compare_exchange_strong(word, &full, now + b->all);
		return CAGE_AGAIN;
	}
	if (from - now > b->rest) {
		*wait_us = ((from - now - b->rest - 1) >> TICK_SHIFT) + 1;
		return CAGE_ELIMIT;
	}
	if (!ledger_keep(p, (from + b->token) >> TICK_SHIFT))
		return CAGE_AGAIN;
	return atomic_compare_exchange_strong(word, &full, from + b->token) ? CAGE_OK : CAGE_AGAIN;
}

enum cage_status ledger_take(struct ledger *l, uint64_t key, uint64_t per_period, uint64_t period_us, uint64_t burst,
			     uint64_t now_us, uint64_t *wait_us)
{
	*wait_us = UINT64_MAX;
	if (burst == 0 || per_period == 0)
		return CAGE_ELIMIT;
	struct bucket b = bucket_of(per_period, period_us, burst);
	enum cage_status st = CAGE_AGAIN;
	for (unsigned i = 0; st == CAGE_AGAIN && i < LIMIT_LEDGER_TRIES; i++) {
		struct ledger_place p = ledger_find(l, key, now_us);
		st = p.entry ? bucket_take(p, &b, now_us << TICK_SHIFT, wait_us) : CAGE_ENOMEM;
	}
	return st == CAGE_AGAIN ? CAGE_ENOMEM : st;
}

/* ---- numbered periods ----
 *
 * Words that count within a period carry its id, so that both change together. A worker whose clock is behind, or that
 * slept, finds a later period there and counts in that one. */

#define AHEAD 60 /* periods; what is further ahead is an id of long ago */

/* 1 to n, over and over; 0 stands for no period. */
static uint64_t period_id(uint64_t period, uint64_t n)
{
	return period % n + 1;
}

/* By how many periods the id is ahead of this one. */
static uint64_t period_lead(uint64_t id, uint64_t period, uint64_t n)
{
	uint64_t lead = (id + n - period_id(period, n)) % n;
	return id > 0 && lead <= AHEAD ? lead : 0;
}

/* ---- budgets ----
 *
 * Two words, for even and odd periods. Before anything is spent in a period, the one before is sealed: its count is
 * then final, and whoever still would spend in it spends in the next. */

#define WINDOW_IDS ((UINT64_C(1) << 22) - 1)
#define WINDOW_SEALED (UINT64_C(1) << 41)
#define WINDOW_COUNT (WINDOW_SEALED - 1)

_Static_assert(LIMIT_LEDGER_SPEND <= WINDOW_COUNT, "a budget fits the count");

/* A word: | id 22 | sealed 1 | count 41 | */
struct window {
	uint64_t id;
	bool sealed;
	uint64_t count;
};

struct budget {
	uint64_t limit, period_us;
};

static uint64_t window_pack(struct window w)
{
	return w.id << 42 | (w.sealed ? WINDOW_SEALED : 0) | w.count;
}

/* What the word says about a period: nothing, when it is about an earlier one; false when about a later one. */
static bool window_of(uint64_t word, uint64_t period, struct window *w)
{
	uint64_t id = word >> 42;
	*w = (struct window){.id = period_id(period, WINDOW_IDS)};
	if (id == w->id) {
		w->sealed = (word & WINDOW_SEALED) != 0;
		w->count = word & WINDOW_COUNT;
	}
	return period_lead(id, period, WINDOW_IDS) == 0;
}

/* The period to spend in: the given one, or a later one that somebody is in already. */
static uint64_t window_current(const struct ledger_entry *e, uint64_t period)
{
	struct window w;
	uint64_t even = period_lead(atomic_load(&e->words[0]) >> 42, period, WINDOW_IDS);
	uint64_t odd = period_lead(atomic_load(&e->words[1]) >> 42, period, WINDOW_IDS);
	period += larger(even, odd);
	return window_of(atomic_load(&e->words[period & 1]), period, &w) && w.sealed ? period + 1 : period;
}

/* *count: what was spent in that period, for good. */
static bool window_seal(_Atomic uint64_t *word, uint64_t period, uint64_t *count)
{
	uint64_t old = atomic_load(word);
	struct window w;
	if (!window_of(old, period, &w))
		return false;
	*count = w.count;
	if (w.sealed)
		return true;
	w.sealed = true;
	return atomic_compare_exchange_strong(word, &old, window_pack(w));
}

__extension__ typedef unsigned __int128 wide;

/* How much of what was spent in the period before lies within the last period, when `left` of this one is left. */
static uint64_t share(uint64_t before, uint64_t left, uint64_t period_us)
{
	return (uint64_t)(((wide)before * left + period_us - 1) / period_us);
}

/* The other way round: how much of the period is left when that share is down to room. */
static uint64_t left_when(uint64_t before, uint64_t room, uint64_t period_us)
{
	return before <= room ? period_us : (uint64_t)((wide)room * period_us / before);
}

/* Until n fits, if nobody else spends. */
static uint64_t budget_wait(const struct budget *b, uint64_t n, uint64_t before, uint64_t count, uint64_t left)
{
	if (count + n <= b->limit)
		return left - left_when(before, b->limit - count - n, b->period_us);
	return left + b->period_us - left_when(count, b->limit - n, b->period_us);
}

static enum cage_status budget_spend(struct ledger_place p, const struct budget *b, uint64_t n, uint64_t now_us,
				     uint64_t *wait_us)
{
	uint64_t period = window_current(p.entry, now_us / b->period_us);
	uint64_t left = (period + 1) * b->period_us - larger(now_us, period * b->period_us);
	_Atomic uint64_t *word = &p.entry->words[period & 1];
	uint64_t before;
	struct window w;
	if (!ledger_keep(p, (period + 2) * b->period_us))
		return CAGE_AGAIN;
	if (!window_seal(&p.entry->words[(period + 1) & 1], period - 1, &before))
		return CAGE_AGAIN;
	uint64_t old = atomic_load(word);
	if (!window_of(old, period, &w) || w.sealed)
		return CAGE_AGAIN;
	if (w.count + share(before, left, b->period_us) + n > b->limit) {
		*wait_us = budget_wait(b, n, before, w.count, left);
		return CAGE_ELIMIT;
	}
	w.count += n;
	return atomic_compare_exchange_strong(word, &old, window_pack(w)) ? CAGE_OK : CAGE_AGAIN;
}

enum cage_status ledger_spend(struct ledger *l, uint64_t key, uint64_t n, uint64_t limit, uint64_t period_us,
			      uint64_t now_us, uint64_t *wait_us)
{
	struct budget b = {smaller(limit, LIMIT_LEDGER_SPEND), smaller(period_us, LONGEST)};
	*wait_us = UINT64_MAX;
	if (n > b.limit)
		return CAGE_ELIMIT;
	enum cage_status st = CAGE_AGAIN;
	for (unsigned i = 0; st == CAGE_AGAIN && i < LIMIT_LEDGER_TRIES; i++) {
		struct ledger_place p = ledger_find(l, key, now_us);
		st = p.entry ? budget_spend(p, &b, n, now_us, wait_us) : CAGE_ENOMEM;
	}
	return st == CAGE_AGAIN ? CAGE_ENOMEM : st;
}

/* ---- distinct members ----
 *
 * Linear counting: each member has one bit by its hash; how many members it probably took follows from how many bits
 * are set. A word: | id 16 | bits 48 | */

#define SET_IDS 0xffffu
#define SET_BITS 48u
#define SET_ALL (LEDGER_WORDS * SET_BITS)

/* The bits of a word that belong to the period. */
static uint64_t set_bits(uint64_t word, uint64_t period)
{
	return word >> SET_BITS == period_id(period, SET_IDS) ? word & ((UINT64_C(1) << SET_BITS) - 1) : 0;
}

static uint64_t set_current(const struct ledger_entry *e, uint64_t period)
{
	uint64_t lead = 0;
	for (size_t i = 0; i < LEDGER_WORDS; i++)
		lead = larger(lead, period_lead(atomic_load(&e->words[i]) >> SET_BITS, period, SET_IDS));
	return period + lead;
}

/* How many members it takes, on average, to set as many bits as are set. */
static unsigned set_count(const struct ledger_entry *e, uint64_t period)
{
	int n = 0;
	double members = 0.5; /* rounds */
	for (size_t i = 0; i < LEDGER_WORDS; i++)
		n += __builtin_popcountll(set_bits(atomic_load(&e->words[i]), period));
	for (int i = 0; i < n; i++)
		members += (double)SET_ALL / ((int)SET_ALL - i);
	return (unsigned)members;
}

static enum cage_status set_note(struct ledger_place p, uint64_t bit, uint64_t period_us, uint64_t now_us,
				 unsigned *count)
{
	uint64_t period = set_current(p.entry, now_us / period_us);
	_Atomic uint64_t *word = &p.entry->words[bit / SET_BITS];
	if (!ledger_keep(p, (period + 1) * period_us))
		return CAGE_AGAIN;
	uint64_t old = atomic_load(word);
	if (period_lead(old >> SET_BITS, period, SET_IDS) > 0)
		return CAGE_AGAIN;
	uint64_t bits = set_bits(old, period) | UINT64_C(1) << bit % SET_BITS;
	uint64_t noted = period_id(period, SET_IDS) << SET_BITS | bits;
	if (noted != old && !atomic_compare_exchange_strong(word, &old, noted))
		return CAGE_AGAIN;
	*count = set_count(p.entry, period);
	return CAGE_OK;
}

enum cage_status ledger_distinct(struct ledger *l, uint64_t key, struct slice member, uint64_t period_us,
				 uint64_t now_us, unsigned *count)
{
	uint64_t bit = slice_hash(member, l->seed ^ key) % SET_ALL;
	enum cage_status st = CAGE_AGAIN;
	for (unsigned i = 0; st == CAGE_AGAIN && i < LIMIT_LEDGER_TRIES; i++) {
		struct ledger_place p = ledger_find(l, key, now_us);
		st = p.entry ? set_note(p, bit, smaller(period_us, LONGEST), now_us, count) : CAGE_ENOMEM;
	}
	return st == CAGE_AGAIN ? CAGE_ENOMEM : st;
}
