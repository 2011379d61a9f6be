/* Workflows: which steps lead back to themselves, what may follow what, and the shape of a request. */
#include "orchestrator/service/workflow_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#include "orchestrator/service/store_workflow.h"
#include "orchestrator/service/workflow_graph.h"

static void test_no_way_back(void **state)
{
	struct graph g = {.n = 4};
	(void)state;
	graph_need(&g, 3, 1);
	graph_need(&g, 3, 2);
	graph_need(&g, 1, 0);
	graph_need(&g, 2, 0);
	graph_close(&g);
	assert_true(graph_reaches(&g, 3, 0) && graph_reaches(&g, 3, 1) && graph_reaches(&g, 1, 0));
	assert_false(graph_reaches(&g, 0, 3) || graph_reaches(&g, 1, 2));
	for (size_t i = 0; i < g.n; i++)
		assert_false(graph_is_circular(&g, i));
}

/* Those on the way back are named, and not those that only need one of them. */
static void test_ways_back(void **state)
{
	struct graph g = {.n = 6};
	(void)state;
	graph_need(&g, 0, 0);
	graph_need(&g, 1, 2);
	graph_need(&g, 2, 3);
	graph_need(&g, 3, 1);
	graph_need(&g, 4, 1);
	graph_close(&g);
	const bool circular[] = {true, true, true, true, false, false};
	for (size_t i = 0; i < g.n; i++)
		assert_int_equal(graph_is_circular(&g, i), circular[i]);
}

/* As many as there may be, each needing the one before; and then the first the last. */
static void test_the_longest_way(void **state)
{
	struct graph g = {.n = LIMIT_WORKFLOW_STEPS};
	(void)state;
	for (size_t i = 1; i < g.n; i++)
		graph_need(&g, i, i - 1);
	graph_close(&g);
	assert_true(graph_reaches(&g, g.n - 1, 0));
	assert_false(graph_is_circular(&g, g.n - 1));
	graph_need(&g, 0, g.n - 1);
	graph_close(&g);
	for (size_t i = 0; i < g.n; i++)
		assert_true(graph_is_circular(&g, i));
}

/* Against a search that is plain to see. */
static bool search(const struct graph *g, size_t from, size_t to, uint64_t *seen)
{
	for (size_t i = 0; i < g->n; i++) {
		if (!(g->needs[from] >> i & 1))
			continue;
		if (i == to)
			return true;
		if (!(*seen >> i & 1)) {
			*seen |= 1ull << i;
			if (search(g, i, to, seen))
				return true;
		}
	}
	return false;
}

/* The same numbers each time. */
static size_t next_number(void)
{
	static uint64_t number = 1;
	number = number * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(number >> 33);
}

static void test_any_graph(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct graph g = {.n = 1 + next_number() % 12};
		for (size_t k = 0; k < g.n + 2; k++)
			graph_need(&g, next_number() % g.n, next_number() % g.n);
		graph_close(&g);
		for (size_t i = 0; i < g.n; i++)
			for (size_t k = 0; k < g.n; k++) {
				uint64_t seen = 0;
				assert_int_equal(graph_reaches(&g, i, k), search(&g, i, k, &seen));
			}
	}
}

static void test_what_may_follow(void **state)
{
	static const char allowed[WORKFLOW_STATES][WORKFLOW_STATES] = {
		[WORKFLOW_WAITING] = {[WORKFLOW_RUNNING] = 1,
				      [WORKFLOW_FAILED] = 1,
				      [WORKFLOW_SKIPPED] = 1,
				      [WORKFLOW_CANCELLED] = 1},
		[WORKFLOW_RUNNING] = {[WORKFLOW_SUCCEEDED] = 1,
				      [WORKFLOW_FAILED] = 1,
				      [WORKFLOW_TIMED_OUT] = 1,
				      [WORKFLOW_KILLED] = 1,
				      [WORKFLOW_CANCELLED] = 1},
	};
	(void)state;
	for (int from = 0; from < WORKFLOW_STATES; from++)
		for (int to = 0; to < WORKFLOW_STATES; to++)
			assert_int_equal(workflow_state_may_follow((enum workflow_state)from, (enum workflow_state)to),
					 allowed[from][to]);
}

/* ---- requests ---- */

static void expect(const char *body, const char *pointer)
{
	json_t *value = json_loads(body, 0, NULL), *errors = json_array();
	assert_non_null(value);
	workflow_check(value, errors);
	const json_t *first = json_array_get(errors, 0);
	if (pointer)
		assert_string_equal(json_string_value(json_object_get(first, "pointer")), pointer);
	else
		assert_null(first);
	json_decref(value);
	json_decref(errors);
}

static void test_shapes(void **state)
{
	(void)state;
	expect("{\"steps\":[{\"id\":\"a\",\"sandbox\":{}}]}", NULL);
	expect("{\"steps\":[{\"id\":\"a\",\"sandbox\":{},\"artifacts\":[{\"path\":\"x/y\",\"max_bytes\":0}]},"
	       "{\"id\":\"b\",\"sandbox\":{},\"needs\":[\"a\"],\"inputs\":[{\"step\":\"a\",\"path\":\"x/y\"}]}]}",
	       NULL);
	expect("[]", "");
	expect("{\"steps\":[]}", "/steps");
	expect("{\"steps\":[1]}", "/steps/0");
	expect("{\"steps\":[{\"id\":\"a\",\"sandbox\":{}}],\"name\":1}", "/name");
	expect("{\"steps\":[{\"id\":\"a\",\"sandbox\":{},\"artifacts\":[{\"path\":\"../x\"}]}]}",
	       "/steps/0/artifacts/0/path");
	expect("{\"steps\":[{\"id\":\"a\",\"sandbox\":{},\"needs\":[\"a\"]}]}", "/steps/0/needs");
}

/* ---- rows ---- */

static void add(struct store *s, const char *id)
{
	struct step_row step = {.id = "one", .state = WORKFLOW_WAITING, .reason = "created"};
	struct workflow_row w = {
		.name = "", .state = WORKFLOW_RUNNING, .reason = "created", .steps = &step, .n_steps = 1};
	snprintf(w.id, sizeof(w.id), "%s", id);
	step.spec = json_pack("{s:[s], s:{s:s}}", "needs", "x", "sandbox", "profile", "p");
	w.labels = json_object();
	assert_int_equal(store_begin(s), STORE_OK);
	assert_int_equal(store_workflow_add(s, &w), STORE_OK);
	assert_int_equal(store_commit(s), STORE_OK);
	json_decref(step.spec);
	json_decref(w.labels);
}

static size_t history_of(struct store *s, const char *id)
{
	json_t *list = store_history(s, id);
	size_t n = json_array_size(list);
	json_decref(list);
	return n;
}

static void test_rows(void **state)
{
	char dir[] = "/tmp/cage-workflow.XXXXXX", path[64];
	struct workflow_row w;
	json_t *body;
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/db", dir);
	struct store *s = store_open(path);
	assert_non_null(s);
	add(s, "wf-a");
	add(s, "wf-a0");
	assert_int_equal(store_workflow_get(s, "wf-none", &w), STORE_NONE);
	assert_int_equal(store_workflow_get(s, "wf-a", &w), STORE_OK);
	w.steps[0].state = WORKFLOW_SUCCEEDED;
	assert_int_equal(store_step_enter(s, "wf-a", &w.steps[0]), STORE_REFUSED);
	assert_null(json_object_get(w.steps[0].spec, "sandbox"));
	assert_int_equal(store_step_body(s, "wf-a", 0, &body), STORE_OK);
	assert_string_equal(json_string_value(json_object_get(body, "profile")), "p");
	json_decref(body);
	w.steps[0].state = WORKFLOW_RUNNING;
	assert_int_equal(store_step_enter(s, "wf-a", &w.steps[0]), STORE_OK);
	assert_int_equal(store_step_body(s, "wf-a", 0, &body), STORE_NONE);
	assert_int_equal(history_of(s, "wf-a/one"), 2);
	assert_int_equal(store_workflow_cancel(s, "wf-a", "asked", false), STORE_OK);
	assert_int_equal(store_workflow_cancel(s, "wf-a", "deleted", true), STORE_OK);
	assert_int_equal(store_workflow_cancel(s, "wf-none", "asked", false), STORE_NONE);
	workflow_row_free(&w);
	assert_int_equal(store_workflow_get(s, "wf-a", &w), STORE_OK);
	assert_string_equal(w.cancelling, "asked");
	assert_true(w.deleting);
	workflow_row_free(&w);
	assert_int_equal(store_workflow_remove(s, "wf-a"), STORE_OK);
	assert_int_equal(history_of(s, "wf-a"), 0);
	assert_int_equal(history_of(s, "wf-a/one"), 0);
	assert_int_equal(history_of(s, "wf-a0/one"), 1);
	store_close(&s);
	for (size_t i = 0; i < 3; i++) {
		static const char *const ends[] = {"", "-wal", "-shm"};
		snprintf(path, sizeof(path), "%s/db%s", dir, ends[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_way_back),
		cmocka_unit_test(test_ways_back),
		cmocka_unit_test(test_the_longest_way),
		cmocka_unit_test(test_any_graph),
		cmocka_unit_test(test_what_may_follow),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
