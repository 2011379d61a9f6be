/* The ledger between processes: in sum nobody gets more than is allowed, whoever is first, late, stopped or killed. Clocks
 * are given, so that what is allowed is known. ledger_steps.c is about the moments in between. */
#include "tests/unit/inspectors/ledger_fixture.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define START (1000 * DAY + 1)
#define PROCESSES 4

/* What the processes of a test share. */
struct shared {
	struct ledger *ledger;
	_Atomic uint64_t *sums; /* one for each thing that is counted */
	_Atomic uint64_t *pace; /* how far each process is; UINT64_MAX: at its end */
};

typedef void job(const struct shared *t, unsigned process);

static struct shared shared_of(size_t n_sums)
{
	struct shared t = {.ledger = ledger_new(), .pace = shared_new((PROCESSES + n_sums) * sizeof(uint64_t))};
	t.sums = t.pace + PROCESSES;
	return t;
}

static bool others_are_at(const struct shared *t, uint64_t step)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (atomic_load(&t->pace[i]) < step)
			return false;
	return true;
}

/* Clocks of processes go together: nobody begins a step before all others have come to the one `ahead` steps before. */
static void keep_pace(const struct shared *t, unsigned process, uint64_t step, uint64_t ahead)
{
	atomic_store(&t->pace[process], step);
	while (step > ahead && !others_are_at(t, step - ahead))
		sched_yield();
}

/* Runs it in several processes that start together. */
static void run_together(const struct shared *t, job *work)
{
	pid_t pids[PROCESSES];
	for (unsigned i = 0; i < PROCESSES; i++)
		atomic_store(&t->pace[i], 0);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] > 0)
			continue;
		keep_pace(t, i, 1, 0);
		work(t, i);
		atomic_store(&t->pace[i], UINT64_MAX);
		_exit(0);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

/* ---- one key ---- */

static void hammer_bucket(const struct shared *t, unsigned process)
{
	(void)process;
	uint64_t key = key_of(t->ledger, LEDGER_RATE, 1);
	atomic_fetch_add(&t->sums[0], take_many(t->ledger, key, 10, S, 50000, START, 40000));
}

static void hammer_budget(const struct shared *t, unsigned process)
{
	uint64_t key = key_of(t->ledger, LEDGER_OUT, 1), spent = 0, wait;
	for (unsigned i = 0; i < 40000; i++) {
		uint64_t n = 1 + (i * 7 + process) % 5;
		spent += ledger_spend(t->ledger, key, n, 100000, HOUR, START, &wait) == CAGE_OK ? n : 0;
	}
	atomic_fetch_add(&t->sums[0], spent);
}

static void one_moment_gives_what_is_there(void **state)
{
	(void)state;
	struct shared t = shared_of(1);
	run_together(&t, hammer_bucket);
	assert_int_equal(atomic_load(&t.sums[0]), 50000);
	atomic_store(&t.sums[0], 0);
	run_together(&t, hammer_budget);
	uint64_t spent = atomic_load(&t.sums[0]);
	assert_true(spent <= 100000 && spent > 100000 - 5);
	ledger_free(t.ledger);
}

#define SECONDS 20
#define PER_SECOND 1000

/* Clocks run over many windows, each process a little off, forwards only. sums: spent by second, and tokens. */
static void hammer_over_time(const struct shared *t, unsigned process)
{
	uint64_t rate = key_of(t->ledger, LEDGER_RATE, 1), out = key_of(t->ledger, LEDGER_OUT, 1), wait;
	for (uint64_t i = 0; i < SECONDS * 2000; i++) {
		uint64_t now = 1000 * DAY + i * S / 2000 + process * 3000;
		keep_pace(t, process, i + 1, 20);
		if (ledger_spend(t->ledger, out, 3, PER_SECOND, S, now, &wait) == CAGE_OK)
			atomic_fetch_add(&t->sums[0], 3);
		if (ledger_take(t->ledger, rate, PER_SECOND, S, 10, now, &wait) == CAGE_OK)
			atomic_fetch_add(&t->sums[1], 1);
	}
}

/* From one full window on, a budget gives its limit in each further one, and in no row of windows more. */
static void time_gives_no_more_than_its_share(void **state)
{
	(void)state;
	struct shared t = shared_of(2);
	run_together(&t, hammer_over_time);
	uint64_t end = SECONDS * S + PROCESSES * 3000; /* microseconds that passed, on the clock that is ahead */
	assert_true(atomic_load(&t.sums[0]) <= PER_SECOND + PER_SECOND * end / S);
	assert_true(atomic_load(&t.sums[0]) >= PER_SECOND * SECONDS / 2);
	assert_true(atomic_load(&t.sums[1]) <= 10 + PER_SECOND * end / S);
	assert_true(atomic_load(&t.sums[1]) >= PER_SECOND * (SECONDS - 1));
	ledger_free(t.ledger);
}

/* At the edge between two windows, some clocks are behind it and some beyond: all together still one budget. */
#define EDGES 3000

static void hammer_edges(const struct shared *t, unsigned process)
{
	uint64_t wait;
	for (uint64_t i = 0; i < EDGES; i++) {
		uint64_t key = key_of(t->ledger, LEDGER_OUT, i % 100);
		uint64_t edge = (100000 + 3 * i) * S, spent = 0;
		keep_pace(t, process, i + 1, 0);
		for (unsigned j = 0; j < 10; j++)
			spent += ledger_spend(t->ledger, key, 1, 20, S, edge + process % 2 - 1, &wait) == CAGE_OK;
		atomic_fetch_add(&t->sums[i], spent);
	}
}

static void an_edge_is_no_place_to_spend_twice(void **state)
{
	(void)state;
	struct shared t = shared_of(EDGES);
	run_together(&t, hammer_edges);
	for (size_t i = 0; i < EDGES; i++)
		assert_true(atomic_load(&t.sums[i]) <= 20);
	ledger_free(t.ledger);
}

/* ---- many keys ---- */

#define KEYS 20000

/* New keys all the time, in a table that is full of what is stale by some clocks and not yet by others. */
static void hammer_takeover(const struct shared *t, unsigned process)
{
	uint64_t wait;
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t now = START + i * 1000 + process * S / 3;
		keep_pace(t, process, i + 1, 50);
		uint64_t key = key_of(t->ledger, LEDGER_RATE, i);
		if (ledger_take(t->ledger, key, 1, 2 * S, 2, now, &wait) == CAGE_OK)
			atomic_fetch_add(&t->sums[i], 1);
	}
}

static void no_key_has_two_entries(void **state)
{
	(void)state;
	struct shared t = shared_of(KEYS);
	uint64_t enough = 0;
	for (uint64_t i = KEYS; i < KEYS + LIMIT_LEDGER_ENTRIES; i++)
		take_many(t.ledger, key_of(t.ledger, LEDGER_RATE, i), 1, (i % 10 + 1) * S, 1, START, 1);
	run_together(&t, hammer_takeover);
	for (size_t i = 0; i < KEYS; i++) {
		assert_true(atomic_load(&t.sums[i]) <= 2);
		enough += atomic_load(&t.sums[i]) == 2;
	}
	assert_true(enough > 0); /* how many depends on how the processes take turns */
	ledger_free(t.ledger);
}

/* ---- killed ---- */

static void use_for_ever(const struct shared *t)
{
	for (uint64_t i = 0;; i++) {
		uint64_t wait, now = START + i * 100000;
		unsigned count;
		if (ledger_take(t->ledger, key_of(t->ledger, LEDGER_RATE, i % 50), 1, S, 1, now, &wait) != CAGE_ENOMEM)
			atomic_fetch_add(&t->sums[0], 1);
		if (ledger_spend(t->ledger, key_of(t->ledger, LEDGER_OUT, i), 1, 1, S, now, &wait) != CAGE_ENOMEM)
			atomic_fetch_add(&t->sums[0], 1);
		if (ledger_distinct(t->ledger, key_of(t->ledger, LEDGER_NAMES, i), SLICE("x"), S, now, &count) ==
		    CAGE_OK)
			atomic_fetch_add(&t->sums[0], 1);
	}
}

static void killed_processes_leave_a_good_table(void **state)
{
	(void)state;
	struct shared t = shared_of(1);
	for (unsigned i = 0; i < 50; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			use_for_ever(&t);
		uint64_t until = atomic_load(&t.sums[0]) + 100 + i * 37;
		while (atomic_load(&t.sums[0]) < until)
			sched_yield();
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	/* long after, every place is free again: the table can be filled to the last entry */
	uint64_t taken = 0, far = START + 900 * DAY;
	for (uint64_t i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++)
		taken += take_many(t.ledger, key_of(t.ledger, LEDGER_RATE, i), 1, DAY, 1, far, 1);
	assert_int_equal(taken, LIMIT_LEDGER_ENTRIES);
	ledger_free(t.ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_moment_gives_what_is_there),
		cmocka_unit_test(time_gives_no_more_than_its_share),
		cmocka_unit_test(an_edge_is_no_place_to_spend_twice),
		cmocka_unit_test(no_key_has_two_entries),
		cmocka_unit_test(killed_processes_leave_a_good_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
