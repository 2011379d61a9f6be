/* Who starts next: places, quotas, turns and the rate of starts. */
#include "orchestrator/service/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after them */
#include <cmocka.h>

#define SECOND 1000000

struct item {
	struct queued q;
	const char *team, *user;
};

static const char *label(const struct queued *q, const char *name)
{
	const struct item *i = (const struct item *)q;
	return strcmp(name, "team") == 0 ? i->team : strcmp(name, "user") == 0 ? i->user : NULL;
}

static struct item *add(struct queue *q, struct item *i, const char *team, const char *user)
{
	*i = (struct item){.q = {.label = label}, .team = team, .user = user};
	assert_true(queue_add(q, &i->q));
	return i;
}

static struct item *next_at(struct queue *q, uint64_t now)
{
	uint64_t wait;
	return (struct item *)queue_next(q, now, &wait);
}

static void test_places(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 2};
	struct queue q;
	struct item all[3];
	queue_init(&q, &rules, 0);
	for (size_t i = 0; i < 3; i++)
		add(&q, &all[i], NULL, NULL);
	assert_int_equal(queue_before(&q, &all[2].q), 2);
	assert_ptr_equal(next_at(&q, 0), &all[0]);
	assert_ptr_equal(next_at(&q, 0), &all[1]);
	assert_null(next_at(&q, 0));
	queue_remove(&q, &all[0].q);
	assert_ptr_equal(next_at(&q, 0), &all[2]);
	assert_int_equal(q.n_placed, 2);
	assert_int_equal(q.n_waiting, 0);
	queue_free(&q);
}

static void test_one_that_leaves_the_queue(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 1};
	struct queue q;
	struct item a, b;
	queue_init(&q, &rules, 0);
	add(&q, &a, NULL, NULL);
	add(&q, &b, NULL, NULL);
	queue_remove(&q, &a.q);
	queue_remove(&q, &a.q);
	assert_ptr_equal(next_at(&q, 0), &b);
	queue_free(&q);
}

static void test_turns(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 100, .fair = "user"};
	struct queue q;
	struct item a[4], b[2], none;
	queue_init(&q, &rules, 0);
	for (size_t i = 0; i < 4; i++)
		add(&q, &a[i], NULL, "a");
	for (size_t i = 0; i < 2; i++)
		add(&q, &b[i], NULL, "b");
	add(&q, &none, NULL, NULL);
	struct item *want[] = {&a[0], &b[0], &none, &a[1], &b[1], &a[2], &a[3]};
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_ptr_equal(next_at(&q, 0), want[i]);
	queue_free(&q);
}

static void test_quotas(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 100,
					  .n_quotas = 2,
					  .quotas = {{.label = "team", .any = true, .running = 1},
						     {.label = "team", .value = "big", .running = 2}}};
	struct queue q;
	struct item x[2], y, big[3], free_one;
	queue_init(&q, &rules, 0);
	add(&q, &x[0], "x", NULL);
	add(&q, &x[1], "x", NULL);
	add(&q, &y, "y", NULL);
	for (size_t i = 0; i < 3; i++)
		add(&q, &big[i], "big", NULL);
	add(&q, &free_one, NULL, NULL);
	struct item *want[] = {&x[0], &y, &big[0], &big[1], &free_one, NULL};
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_ptr_equal(next_at(&q, 0), want[i]);
	queue_remove(&q, &x[0].q);
	assert_ptr_equal(next_at(&q, 0), &x[1]);
	queue_free(&q);
}

static void test_rate(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 100, .starts = 2, .period_us = SECOND};
	struct queue q;
	struct item all[4];
	uint64_t wait = 0;
	queue_init(&q, &rules, 0);
	for (size_t i = 0; i < 4; i++)
		add(&q, &all[i], NULL, NULL);
	assert_ptr_equal(next_at(&q, 0), &all[0]);
	assert_ptr_equal(next_at(&q, 0), &all[1]);
	assert_null(queue_next(&q, 100000, &wait));
	assert_int_equal(wait, 400000);
	assert_ptr_equal(next_at(&q, 500000), &all[2]);
	assert_ptr_equal(next_at(&q, 100 * (uint64_t)SECOND), &all[3]);
	assert_null(queue_next(&q, 100 * (uint64_t)SECOND, &wait));
	assert_int_equal(wait, 0); /* nobody waits */
	queue_free(&q);
}

static void test_those_that_run_already(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 1};
	struct queue q;
	struct item old, fresh;
	queue_init(&q, &rules, 0);
	old = (struct item){.q = {.label = label}};
	assert_true(queue_place(&q, &old.q));
	add(&q, &fresh, NULL, NULL);
	assert_null(next_at(&q, 0));
	queue_remove(&q, &old.q);
	assert_ptr_equal(next_at(&q, 0), &fresh);
	queue_free(&q);
}

/* What ends the test of a queue: all leave it, and nothing is kept of them. */
static void end(struct queue *q, struct item *all, size_t n)
{
	for (size_t i = n; i > 0; i--)
		queue_remove(q, &all[i - 1].q);
	assert_int_equal(q->n_waiting + q->n_placed + q->n_groups + q->n_tallies, 0);
	queue_free(q);
}

#define MANY LIMIT_SERVE_QUEUED

static struct item *many(struct queue *q, size_t teams, size_t users)
{
	static char names[MANY][16];
	struct item *all = calloc(MANY, sizeof(*all));
	assert_non_null(all);
	for (size_t i = 0; i < MANY; i++)
		snprintf(names[i], sizeof(names[i]), "%06zu", i);
	for (size_t i = 0; i < MANY; i++)
		add(q, &all[i], names[i % teams], names[i % users]);
	return all;
}

/* As many as may wait, with quotas that hold nearly all of them back: each choice looks at groups, and not at all that wait. */
static void test_many_of_few_teams(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = LIMIT_SERVE_RUNNING,
					  .fair = "user",
					  .n_quotas = 2,
					  .quotas = {{.label = "team", .any = true, .running = 10},
						     {.label = "team", .value = "000001", .running = 3}}};
	struct queue q;
	size_t started = 0;
	queue_init(&q, &rules, 0);
	struct item *all = many(&q, 20, 10);
	assert_int_equal(q.n_groups, 20);
	assert_int_equal(queue_before(&q, &all[MANY - 1].q), MANY - 1);
	while (next_at(&q, 0))
		started++;
	assert_int_equal(started, 19 * 10 + 3);
	assert_true(q.steps <= (started + 1) * 20);
	end(&q, all, MANY);
	free(all);
}

/* Each with a fair value of its own: the next is found without looking at the others. */
static void test_many_of_many_users(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = MANY,
					  .fair = "user",
					  .n_quotas = 1,
					  .quotas = {{.label = "team", .any = true, .running = MANY}}};
	struct queue q;
	queue_init(&q, &rules, 0);
	struct item *all = many(&q, MANY, MANY);
	for (size_t i = 0; i < 1000; i++)
		assert_ptr_equal(next_at(&q, 0), &all[i]);
	assert_true(q.steps <= 1000 * 2);
	end(&q, all, MANY);
	free(all);
}

static void test_one_that_could_not_start_is_the_first_again(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 5};
	struct queue q;
	struct item all[3];
	queue_init(&q, &rules, 0);
	for (size_t i = 0; i < 3; i++)
		add(&q, &all[i], NULL, NULL);
	assert_ptr_equal(next_at(&q, 0), &all[0]);
	queue_return(&q, &all[0].q);
	assert_int_equal(queue_before(&q, &all[0].q), 0);
	assert_int_equal(queue_before(&q, &all[2].q), 2);
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(next_at(&q, 0), &all[i]);
	end(&q, all, 3);
}

static bool has_turn(struct queue *q, const char *team, uint64_t now)
{
	struct item i = {.q = {.label = label}, .team = team};
	return queue_has_turn(q, &i.q, now);
}

static void test_would_it_be_the_next(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 2,
					  .starts = 2,
					  .period_us = SECOND,
					  .quotas = {{.label = "team", .any = true, .running = 1}},
					  .n_quotas = 1};
	struct queue q;
	struct item all[3];
	queue_init(&q, &rules, 0);
	assert_true(has_turn(&q, "a", 0));
	assert_int_equal(q.n_waiting + q.n_placed + q.n_groups, 0);
	add(&q, &all[0], "a", NULL);
	assert_false(has_turn(&q, "a", 0)); /* another is before it */
	assert_ptr_equal(next_at(&q, 0), &all[0]);
	assert_false(has_turn(&q, "a", 0)); /* the quota */
	add(&q, &all[1], "a", NULL);
	assert_true(has_turn(&q, "b", 0)); /* who waits for a quota holds up nobody else */
	add(&q, &all[2], "b", NULL);
	assert_ptr_equal(next_at(&q, 0), &all[2]);
	assert_false(has_turn(&q, "c", SECOND)); /* no place */
	queue_remove(&q, &all[2].q);
	assert_true(has_turn(&q, "c", SECOND));
	queue_remove(&q, &all[0].q);
	queue_remove(&q, &all[1].q);
	queue_free(&q);
}

static void test_would_it_be_the_next_at_this_rate(void **state)
{
	(void)state;
	const struct queue_rules rules = {.running = 9, .starts = 1, .period_us = SECOND};
	struct queue q;
	struct item one;
	queue_init(&q, &rules, 0);
	add(&q, &one, NULL, NULL);
	assert_ptr_equal(next_at(&q, 0), &one);
	assert_false(has_turn(&q, NULL, SECOND - 1));
	assert_true(has_turn(&q, NULL, SECOND));
	queue_remove(&q, &one.q);
	queue_free(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_would_it_be_the_next),
		cmocka_unit_test(test_would_it_be_the_next_at_this_rate),
		cmocka_unit_test(test_one_that_leaves_the_queue),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_those_that_run_already),
		cmocka_unit_test(test_many_of_few_teams),
		cmocka_unit_test(test_many_of_many_users),
		cmocka_unit_test(test_one_that_could_not_start_is_the_first_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
