/* What one process sees of the ledger: the arithmetic of buckets, budgets and sets at its edges, and the table when it is
 * full. */
#include "tests/unit/inspectors/ledger_fixture.h"

#include <stdlib.h>

#define START (1000 * DAY + 1) /* no special time */

static void keys(void **state)
{
	(void)state;
	struct ledger *l = ledger_new(), *other = ledger_new();
	const struct slice a[] = {SLICE("ab"), SLICE("c")}, b[] = {SLICE("a"), SLICE("bc")};
	const struct slice c[] = {SLICE("abc")}, d[] = {SLICE("abc"), SLICE("")};
	const struct slice box = SLICE("box");
	uint64_t key = ledger_key(l, box, LEDGER_RATE, a, 2);
	assert_int_equal(key, ledger_key(l, box, LEDGER_RATE, a, 2));
	assert_int_not_equal(key, ledger_key(l, SLICE("bo"), LEDGER_RATE, a, 2));
	assert_int_not_equal(key, ledger_key(l, SLICE(""), LEDGER_RATE, a, 2));
	assert_int_not_equal(key, ledger_key(l, box, LEDGER_OUT, a, 2));
	assert_int_not_equal(key, ledger_key(l, box, LEDGER_RATE, b, 2));
	assert_int_not_equal(key, ledger_key(l, box, LEDGER_RATE, c, 1));
	assert_int_not_equal(ledger_key(l, box, LEDGER_RATE, c, 1), ledger_key(l, box, LEDGER_RATE, d, 2));
	assert_int_not_equal(key, ledger_key(other, box, LEDGER_RATE, a, 2));
	for (uint64_t i = 0; i < 256; i++)
		for (uint64_t j = 0; j < 256; j++)
			assert_int_not_equal(key_of(l, LEDGER_RATE, i), key_of(l, LEDGER_OUT, j));
	ledger_free(l);
	ledger_free(other);
}

/* ---- buckets ---- */

static void expect_wait(struct ledger *l, uint64_t key, uint64_t count, uint64_t period, uint64_t burst, uint64_t now,
			uint64_t expected)
{
	uint64_t wait = 0;
	assert_int_equal(ledger_take(l, key, count, period, burst, now, &wait), CAGE_ELIMIT);
	assert_int_equal(wait, expected);
}

static void a_burst_then_the_rate(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t key = key_of(l, LEDGER_RATE, 1), wait;
	assert_int_equal(take_many(l, key, 10, S, 50, START, 100), 50);
	expect_wait(l, key, 10, S, 50, START, S / 10);
	expect_wait(l, key, 10, S, 50, START + S / 10 - 1, 1);
	assert_int_equal(ledger_take(l, key, 10, S, 50, START + S / 10, &wait), CAGE_OK);
	expect_wait(l, key, 10, S, 50, START + S / 10, S / 10);
	assert_int_equal(take_many(l, key, 10, S, 50, START + 2 * S, 100), 19);
	assert_int_equal(take_many(l, key, 10, S, 50, START + DAY, 100), 50);
	ledger_free(l);
}

static void burst_of_nothing_and_of_one(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t none = key_of(l, LEDGER_RATE, 1), one = key_of(l, LEDGER_RATE, 2);
	expect_wait(l, none, 10, S, 0, START, NEVER);
	expect_wait(l, none, 10, S, 0, START + DAY, NEVER);
	assert_int_equal(take_many(l, one, 1, DAY, 1, START, 5), 1);
	expect_wait(l, one, 1, DAY, 1, START, DAY);
	expect_wait(l, one, 1, DAY, 1, START + DAY - 1, 1);
	assert_int_equal(take_many(l, one, 1, DAY, 1, START + DAY, 5), 1);
	ledger_free(l);
}

/* Over a long time the rate is kept to the last token, whatever its fraction, and never passed. */
static void odd_rates_add_up(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	static const uint64_t rates[] = {3, 7, 11, 997, 123457};
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t key = key_of(l, LEDGER_RATE, i), taken = 0, wait, now = START;
		for (unsigned tries = 0; tries < 200000; tries++, now += 37) {
			taken += ledger_take(l, key, rates[i], S, 2, now, &wait) == CAGE_OK;
			uint64_t allowed = 2 + (now - START) * rates[i] / S;
			assert_true(taken <= allowed);
			if (rates[i] * 37 < S)
				assert_true(taken + 1 >= allowed);
		}
	}
	ledger_free(l);
}

static void numbers_at_their_ends(void **state)
{
	(void)state;
	static const uint64_t ends[] = {1, 2, S, DAY, UINT64_C(1) << 40, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	const size_t n = sizeof(ends) / sizeof(ends[0]);
	struct ledger *l = ledger_new();
	for (size_t i = 0; i < n * n * n; i++) {
		uint64_t key = key_of(l, LEDGER_RATE, i), wait = 0;
		uint64_t count = ends[i % n], period = ends[i / n % n], burst = ends[i / n / n];
		assert_int_equal(ledger_take(l, key, count, period, burst, 0, &wait), CAGE_OK);
		enum cage_status second = ledger_take(l, key, count, period, burst, 0, &wait);
		assert_int_equal(second, burst > 1 ? CAGE_OK : CAGE_ELIMIT);
		if (second == CAGE_ELIMIT)
			assert_true(wait > 0 && wait <= (period < UINT64_C(1) << 50 ? period : UINT64_C(1) << 50));
	}
	ledger_free(l);
}

/* What was taken under a slow rate must not bar a fast one for days; nor does it come for free. */
static void a_reload_changes_the_rate(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t key = key_of(l, LEDGER_RATE, 1);
	assert_int_equal(take_many(l, key, 1, DAY, 10, START, 20), 10);
	expect_wait(l, key, 10, S, 10, START + 5 * S, S / 10);
	assert_int_equal(take_many(l, key, 10, S, 10, START + 6 * S, 20), 10);
	ledger_free(l);
}

static void a_clock_that_is_behind_gets_nothing(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t rate = key_of(l, LEDGER_RATE, 1), out = key_of(l, LEDGER_OUT, 1), wait;
	assert_int_equal(take_many(l, rate, 10, S, 10, START, 20), 10);
	assert_int_equal(take_many(l, rate, 10, S, 10, START - S / 2, 20), 0);
	assert_int_equal(take_many(l, rate, 10, S, 10, START, 20), 0);

	uint64_t edge = 1000 * DAY; /* a new hour */
	assert_int_equal(ledger_spend(l, out, 60, 100, HOUR, edge + 1, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, out, 60, 100, HOUR, edge - 1, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, out, 40, 100, HOUR, edge - 3 * HOUR, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, out, 1, 100, HOUR, edge + 2, &wait), CAGE_ELIMIT);
	ledger_free(l);
}

/* ---- budgets ---- */

static void a_budget_is_spent_once(void **state)
{
	(void)state;
	const uint64_t limit = MIB(500), edge = 24000 * HOUR;
	struct ledger *l = ledger_new();
	uint64_t key = key_of(l, LEDGER_OUT, 1), wait;
	assert_int_equal(ledger_spend(l, key, limit + 1, limit, HOUR, edge, &wait), CAGE_ELIMIT);
	assert_int_equal(wait, NEVER);
	assert_int_equal(ledger_spend(l, key, limit - 1, limit, HOUR, edge - 1, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, 1, limit, HOUR, edge - 1, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, 0, limit, HOUR, edge - 1, &wait), CAGE_OK);
	/* behind the edge nothing is free yet; after half a period half of it is */
	assert_int_equal(ledger_spend(l, key, 1, limit, HOUR, edge, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, key, limit / 2 + 1, limit, HOUR, edge + HOUR / 2, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, key, limit / 2, limit, HOUR, edge + HOUR / 2, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, limit / 2, limit, HOUR, edge + HOUR - 1, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, key, limit / 2, limit, HOUR, edge + HOUR, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, limit, limit, HOUR, edge + 3 * HOUR, &wait), CAGE_OK);
	ledger_free(l);
}

static void a_budget_that_is_too_large_is_cut(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t key = key_of(l, LEDGER_OUT, 1), wait;
	assert_int_equal(ledger_spend(l, key, UINT64_MAX, UINT64_MAX, DAY, START, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, key, LIMIT_LEDGER_SPEND, UINT64_MAX, DAY, START, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, 1, UINT64_MAX, DAY, START, &wait), CAGE_ELIMIT);
	assert_int_equal(ledger_spend(l, key, LIMIT_LEDGER_SPEND, UINT64_MAX, DAY, START + 3 * DAY, &wait), CAGE_OK);
	key = key_of(l, LEDGER_OUT, 2);
	assert_int_equal(ledger_spend(l, key, 5, 5, UINT64_MAX, START, &wait), CAGE_OK);
	assert_int_equal(ledger_spend(l, key, 1, 5, UINT64_MAX, START + DAY, &wait), CAGE_ELIMIT);
	ledger_free(l);
}

/* The rule of the header, in its plainest form. */
struct model {
	uint64_t period, before, count;
};

static bool model_fits(const struct model *m, uint64_t n, uint64_t limit, uint64_t length, uint64_t now)
{
	uint64_t left = length - now % length;
	return m->count + (m->before * left + length - 1) / length + n <= limit;
}

static void model_move(struct model *m, uint64_t period)
{
	if (period == m->period)
		return;
	*m = (struct model){.period = period, .before = period == m->period + 1 ? m->count : 0};
}

static void budgets_follow_the_model(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	unsigned refused = 0;
	srandom(7);
	for (uint64_t run = 0; run < 20; run++) {
		uint64_t key = key_of(l, LEDGER_OUT, run), length = run % 2 ? S : MINUTE, wait;
		uint64_t limit = 1000 + run * 77777, now = START + run;
		struct model m = {.period = now / length};
		for (unsigned i = 0; i < 2000; i++) {
			uint64_t n = (uint64_t)random() % limit / 10;
			now += (uint64_t)random() % (length / 15);
			model_move(&m, now / length);
			bool fits = model_fits(&m, n, limit, length, now);
			assert_int_equal(ledger_spend(l, key, n, limit, length, now, &wait),
					 fits ? CAGE_OK : CAGE_ELIMIT);
			if (fits) {
				m.count += n;
				continue;
			}
			refused++;
			struct model later = m, just = m;
			model_move(&later, (now + wait) / length);
			assert_true(model_fits(&later, n, limit, length, now + wait));
			model_move(&just, (now + wait - 1) / length);
			assert_false(model_fits(&just, n, limit, length, now + wait - 1));
		}
	}
	assert_true(refused > 1000);
	ledger_free(l);
}

/* ---- distinct members ---- */

static unsigned note(struct ledger *l, uint64_t key, uint64_t member, uint64_t now)
{
	unsigned count = 0;
	assert_int_equal(ledger_distinct(l, key, slice_of(&member, sizeof(member)), MINUTE, now, &count), CAGE_OK);
	return count;
}

static void members_count_once(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t key = key_of(l, LEDGER_NAMES, 1), edge = 60000 * MINUTE;
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(note(l, key, 1, edge + i), 1);
	assert_true(note(l, key, 2, edge + 100) <= 2);
	/* a worker that is behind counts in the same minute; the next one starts from nothing */
	assert_true(note(l, key, 2, edge - 1) <= 2);
	assert_int_equal(note(l, key, 3, edge + MINUTE), 1);
	assert_int_equal(note(l, key, 3, edge + 9999 * MINUTE), 1);
	ledger_free(l);
}

static void members_are_counted_nearly(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	for (uint64_t run = 0; run < 20; run++) {
		uint64_t key = key_of(l, LEDGER_NAMES, run);
		unsigned count = 0, last = 0;
		for (uint64_t i = 1; i <= 10000; i++, last = count) {
			count = note(l, key, i, START);
			assert_true(count >= last);
			if (i <= 1000) /* far beyond any chance */
				assert_true(count <= i + i / 2 + 4 && count + i / 3 + 6 >= i);
		}
		assert_true(count > 1000 && count <= 2149);
	}
	ledger_free(l);
}

/* ---- the table ---- */

#define SHARED 3 /* keys that may, by chance, share the entry of another: one is rare already */

/* Tokens that are back after a day, in as many entries as a sandbox has room for; how many that is. */
static uint64_t fill(struct ledger *l, uint64_t sandbox, uint64_t now)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++)
		n += take_many(l, key_of_sandbox(l, sandbox, LEDGER_RATE, i), 1, DAY, 1, now, 1);
	return n;
}

/* One that has used up all of its room takes none of the others'. */
static void a_sandbox_fills_its_own_share_alone(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t wait;
	for (uint64_t sandbox = 0; sandbox < LIMIT_LEDGER_SANDBOXES; sandbox++) {
		uint64_t last = key_of_sandbox(l, sandbox, LEDGER_OUT, 1);
		assert_int_equal(ledger_spend(l, last, 5, 9, DAY, START, &wait), CAGE_OK);
		assert_int_equal(fill(l, sandbox, START), LIMIT_LEDGER_ENTRIES - 1);
		assert_int_equal(ledger_spend(l, last, 5, 9, DAY, START, &wait), CAGE_ELIMIT);
	}
	for (uint64_t sandbox = 0; sandbox < LIMIT_LEDGER_SANDBOXES; sandbox++) {
		uint64_t last = key_of_sandbox(l, sandbox, LEDGER_OUT, 1);
		assert_int_equal(ledger_spend(l, last, 4, 9, DAY, START, &wait), CAGE_OK); /* the same share again */
	}
	ledger_free(l);
}

/* More sandboxes than shares: what they count is still apart, and room that is there is theirs. */
static void late_sandboxes_join_the_others(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	for (uint64_t sandbox = 0; sandbox < 4 * LIMIT_LEDGER_SANDBOXES; sandbox++) {
		uint64_t key = key_of_sandbox(l, sandbox, LEDGER_RATE, 1);
		assert_int_equal(take_many(l, key, 1, DAY, 2, START, 5), 2);
		assert_int_equal(key, key_of_sandbox(l, sandbox, LEDGER_RATE, 1));
	}
	ledger_free(l);
}

static void a_full_table_refuses_and_forgets_nothing(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	unsigned count;
	uint64_t wait;
	assert_int_equal(fill(l, 0, START), LIMIT_LEDGER_ENTRIES);
	uint64_t held = 0, none = 0;
	for (uint64_t i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++) {
		enum cage_status st = ledger_take(l, key_of(l, LEDGER_RATE, i), 1, DAY, 1, START + DAY - S, &wait);
		held += st == CAGE_ELIMIT;
		none += st == CAGE_ENOMEM;
	}
	assert_int_equal(held + none, 4 * LIMIT_LEDGER_ENTRIES);
	assert_true(held >= LIMIT_LEDGER_ENTRIES && held <= LIMIT_LEDGER_ENTRIES + SHARED);
	uint64_t refused = 0;
	for (uint64_t i = 0; i < 100; i++) {
		refused += ledger_spend(l, key_of(l, LEDGER_OUT, i), 1, 2, S, START, &wait) == CAGE_ENOMEM;
		refused += ledger_distinct(l, key_of(l, LEDGER_NAMES, i), SLICE("x"), S, START, &count) == CAGE_ENOMEM;
	}
	assert_true(refused >= 200 - SHARED);
	ledger_free(l);
}

/* One use of a key of some kind, which is all that is allowed. */
static enum cage_status use_once(struct ledger *l, enum ledger_kind kind, uint64_t number, uint64_t now)
{
	uint64_t key = key_of(l, kind, number), wait;
	unsigned count = 0;
	switch (kind) {
	case LEDGER_RATE:
		return ledger_take(l, key, 1, S, 1, now, &wait);
	case LEDGER_OUT:
		return ledger_spend(l, key, 9, 9, S / 2, now, &wait);
	case LEDGER_NAMES:
		if (ledger_distinct(l, key, slice_of(&number, sizeof(number)), S, now, &count) == CAGE_ENOMEM)
			return CAGE_ENOMEM;
		return count == 1 ? CAGE_OK : CAGE_ELIMIT;
	}
	return CAGE_EPROTO;
}

/* Stale entries of any kind are taken over, and leave nothing behind to their next owner. */
static void stale_entries_are_taken_over(void **state)
{
	(void)state;
	struct ledger *l = ledger_new();
	uint64_t number = 0, now = START, shared = 0;
	for (unsigned round = 0; round < 12; round++, now += 6 * S) {
		uint64_t used = 0;
		for (unsigned i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++, number++) {
			enum cage_status st = use_once(l, (enum ledger_kind)((round + i) % 3), number, now);
			used += st == CAGE_OK;
			shared += st == CAGE_ELIMIT;
		}
		assert_true(used >= LIMIT_LEDGER_ENTRIES && used <= LIMIT_LEDGER_ENTRIES + SHARED);
	}
	assert_true(shared <= SHARED);
	ledger_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(a_burst_then_the_rate),
		cmocka_unit_test(burst_of_nothing_and_of_one),
		cmocka_unit_test(odd_rates_add_up),
		cmocka_unit_test(numbers_at_their_ends),
		cmocka_unit_test(a_reload_changes_the_rate),
		cmocka_unit_test(a_clock_that_is_behind_gets_nothing),
		cmocka_unit_test(a_budget_is_spent_once),
		cmocka_unit_test(a_budget_that_is_too_large_is_cut),
		cmocka_unit_test(budgets_follow_the_model),
		cmocka_unit_test(members_count_once),
		cmocka_unit_test(members_are_counted_nearly),
		cmocka_unit_test(a_sandbox_fills_its_own_share_alone),
		cmocka_unit_test(late_sandboxes_join_the_others),
		cmocka_unit_test(a_full_table_refuses_and_forgets_nothing),
		cmocka_unit_test(stale_entries_are_taken_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
