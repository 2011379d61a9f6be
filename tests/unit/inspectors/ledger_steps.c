/* The ledger while somebody is in the middle of using it: a process is stepped through, instruction by instruction, and
 * is killed in every state that others can see, or stopped, overtaken by others and let go on. */
#include "tests/unit/inspectors/ledger_fixture.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspectors/ledger_table.h"

/* All that is used here: one sandbox, which has the first share. */
#define LEDGER_USED (offsetof(struct ledger, entries) + sizeof(((struct ledger *)0)->entries[0]))

#define STEPS 1000000 /* a bound */
#define STOPS 60      /* places in which a process is stopped, at most: fewer when the way is long */

#define LATER (24000 * HOUR - 1) /* by the clock of the process: an hour is about to end */
#define START (LATER - 10 * S)   /* when the table was filled */
#define ALLOWED 3

/* Who does what. */
struct scene {
	void (*prepare)(struct ledger *l);
	enum cage_status (*use)(struct ledger *l, uint64_t number, uint64_t now); /* takes one of ALLOWED */
	uint64_t others_now;                                                      /* the clock of the others */
};

static enum cage_status take_one(struct ledger *l, uint64_t number, uint64_t now)
{
	uint64_t wait;
	return ledger_take(l, key_of(l, LEDGER_RATE, number), 1, MINUTE, ALLOWED, now, &wait);
}

static enum cage_status spend_one(struct ledger *l, uint64_t number, uint64_t now)
{
	uint64_t wait;
	return ledger_spend(l, key_of(l, LEDGER_OUT, number), 1, ALLOWED, HOUR, now, &wait);
}

static unsigned use_up(const struct scene *scene, struct ledger *l, uint64_t number, uint64_t now)
{
	unsigned used = 0;
	for (unsigned i = 0; i < 2 * ALLOWED; i++)
		used += scene->use(l, number, now) == CAGE_OK;
	return used;
}

/* ---- how the table is ---- */

#define NUMBER UINT64_C(1000000) /* that of the first key which the process uses; those of others are lower */

static void leave_empty(struct ledger *l)
{
	(void)l;
}

/* All places are owned by keys whose tokens are back. */
static void fill_with_stale(struct ledger *l)
{
	for (uint64_t i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++)
		take_many(l, key_of(l, LEDGER_RATE, i), 1, S, 1, START, 1);
}

/* Some are stale for everybody, more for who has the later clock, most for nobody. */
static void fill_with_both(struct ledger *l)
{
	for (uint64_t i = 0; i < 4 * LIMIT_LEDGER_ENTRIES; i++) {
		uint64_t back = i % 10 == 0 ? S : i % 10 < 4 ? 5 * S : DAY;
		take_many(l, key_of(l, LEDGER_RATE, i), 1, back, 1, START, 1);
	}
}

/* The keys are in use in this hour, with nothing spent yet. */
static void open_accounts(struct ledger *l)
{
	uint64_t wait;
	for (uint64_t i = 0; i < STOPS; i++)
		assert_int_equal(ledger_spend(l, key_of(l, LEDGER_OUT, NUMBER + i), 0, ALLOWED, HOUR, LATER, &wait),
				 CAGE_OK);
}

/* ---- the process ---- */

struct stepped {
	struct ledger *ledger;
	_Atomic uint64_t *result; /* 0: still at it; 1 + the status */
	pid_t pid;                /* 0: stepping is not allowed here */
};

static void stepped_start(struct stepped *p, const struct scene *scene, uint64_t number)
{
	int status;
	atomic_store(p->result, 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(1);
		raise(SIGSTOP);
		atomic_store(p->result, 1 + (uint64_t)scene->use(p->ledger, number, LATER));
		pause();
	}
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	if (!WIFSTOPPED(status))
		p->pid = 0;
}

/* One instruction; false once the process is through. */
static bool stepped_on(const struct stepped *p)
{
	int status;
	if (atomic_load(p->result) > 0)
		return false;
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, p->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	assert_true(WIFSTOPPED(status));
	return true;
}

static unsigned stepped_many(const struct stepped *p, unsigned most)
{
	unsigned n = 0;
	while (n < most && stepped_on(p))
		n++;
	return n;
}

static void stepped_kill(const struct stepped *p)
{
	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
}

/* ---- killed ---- */

/* What others find when the process dies here; in a copy, since it goes on. */
static void check_as_if_killed(const struct scene *scene, const struct ledger *l, struct ledger *copy)
{
	memcpy(copy, l, LEDGER_USED);
	unsigned left = use_up(scene, copy, NUMBER, LATER);
	assert_true(left == ALLOWED || left == ALLOWED - 1);
	assert_int_equal(use_up(scene, copy, NUMBER, LATER + DAY), ALLOWED);
	/* those that may have lost their entry start anew, which is the same: a full bucket */
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(take_many(copy, key_of(copy, LEDGER_RATE, i), 1, S, 1, LATER + DAY, 2), 1);
}

static void step_and_check(const struct scene *scene)
{
	struct ledger *seen = ledger_new(), *copy = ledger_new();
	struct stepped p = {.ledger = ledger_new(), .result = shared_new(sizeof(uint64_t))};
	unsigned states = 0;
	scene->prepare(p.ledger);
	memcpy(seen, p.ledger, LEDGER_USED);
	stepped_start(&p, scene, NUMBER);
	if (p.pid == 0)
		skip();
	for (unsigned i = 0; i < STEPS && stepped_on(&p); i++) {
		if (memcmp(seen, p.ledger, LEDGER_USED) == 0)
			continue;
		memcpy(seen, p.ledger, LEDGER_USED);
		check_as_if_killed(scene, seen, copy);
		states++;
	}
	stepped_kill(&p);
	assert_int_equal(atomic_load(p.result), 1 + CAGE_OK);
	assert_true(states >= 4); /* claimed, ready, kept, counted */
	ledger_free(p.ledger);
	ledger_free(seen);
	ledger_free(copy);
}

static void killed_at_any_instruction(void **state)
{
	(void)state;
	step_and_check(&(struct scene){leave_empty, take_one, LATER});
	step_and_check(&(struct scene){fill_with_stale, take_one, LATER});
	step_and_check(&(struct scene){fill_with_stale, spend_one, LATER});
}

/* ---- stopped ---- */

/* Stops after so many steps; others use up what there is, and it goes on. In sum that is what is allowed. Returns the
 * steps made. */
static unsigned stop_and_go_on(const struct scene *scene, struct stepped *p, uint64_t number, unsigned stop)
{
	stepped_start(p, scene, number);
	if (p->pid == 0)
		skip();
	unsigned steps = stepped_many(p, stop);
	unsigned used = use_up(scene, p->ledger, number, scene->others_now);
	assert_int_equal(ptrace(PTRACE_CONT, p->pid, NULL, NULL), 0);
	while (atomic_load(p->result) == 0)
		sched_yield();
	stepped_kill(p);
	used += atomic_load(p->result) == 1 + CAGE_OK;
	assert_true(used <= ALLOWED);
	assert_true(used == ALLOWED || scene->others_now < LATER); /* who is behind may find less */
	return steps;
}

/* The same at places all over the way, each time with another key in a table as it was. */
static void stop_all_the_way(const struct scene *scene)
{
	struct ledger *before = ledger_new();
	struct stepped p = {.ledger = ledger_new(), .result = shared_new(sizeof(uint64_t))};
	scene->prepare(before);
	memcpy(p.ledger, before, LEDGER_USED);
	unsigned length = stop_and_go_on(scene, &p, NUMBER, STEPS);
	unsigned stops = length < 1000 ? STOPS : length < 5000 ? STOPS / 3 : STOPS / 10;
	for (unsigned i = 0; i < stops; i++) {
		memcpy(p.ledger, before, LEDGER_USED);
		stop_and_go_on(scene, &p, NUMBER + i, length * i / stops);
	}
	ledger_free(p.ledger);
	ledger_free(before);
}

static void stopped_and_overtaken(void **state)
{
	(void)state;
	stop_all_the_way(&(struct scene){leave_empty, take_one, LATER});
	stop_all_the_way(&(struct scene){leave_empty, spend_one, LATER});
}

/* The others are in the next period already, where all that was spent still counts. */
static void stopped_before_an_edge(void **state)
{
	(void)state;
	stop_all_the_way(&(struct scene){leave_empty, spend_one, LATER + 1});
	stop_all_the_way(&(struct scene){open_accounts, spend_one, LATER + 1});
}

/* The others, with an earlier clock, can't use the place that the process has found. */
static void stopped_while_making_an_entry(void **state)
{
	(void)state;
	stop_all_the_way(&(struct scene){fill_with_both, take_one, LATER - 2 * S});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_any_instruction),
		cmocka_unit_test(stopped_and_overtaken),
		cmocka_unit_test(stopped_before_an_edge),
		cmocka_unit_test(stopped_while_making_an_entry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
