/* The store: rows, and that no state follows another that it may not follow. */
#include "orchestrator/service/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

static const char allowed[STATES][STATES] = {
	[QUEUED] = {[CREATING] = 1, [KILLED] = 1, [TIMED_OUT] = 1},
	[CREATING] = {[RUNNING] = 1, [SUCCEEDED] = 1, [FAILED] = 1, [TIMED_OUT] = 1, [KILLED] = 1},
	[RUNNING] = {[SUCCEEDED] = 1, [FAILED] = 1, [TIMED_OUT] = 1, [KILLED] = 1},
	[SUCCEEDED] = {[DELETED] = 1},
	[FAILED] = {[DELETED] = 1},
	[TIMED_OUT] = {[DELETED] = 1},
	[KILLED] = {[DELETED] = 1},
};

static void test_what_may_follow(void **state)
{
	(void)state;
	for (int from = 0; from < STATES; from++)
		for (int to = 0; to < STATES; to++)
			assert_int_equal(state_may_follow((enum state)from, (enum state)to), allowed[from][to]);
}

static struct store *open_new(char path[32])
{
	strcpy(path, "/tmp/cage-store.XXXXXX");
	close(mkstemp(path));
	struct store *s = store_open(path);
	assert_non_null(s);
	return s;
}

static void close_all(struct store **s, const char *path)
{
	char beside[48];
	store_close(s);
	unlink(path);
	snprintf(beside, sizeof(beside), "%s-wal", path);
	unlink(beside);
	snprintf(beside, sizeof(beside), "%s-shm", path);
	unlink(beside);
}

static struct row row_of(const char *id)
{
	struct row r = {.state = QUEUED, .reason = "created", .created_us = 1, .deadline_us = 2};
	snprintf(r.id, sizeof(r.id), "%s", id);
	r.spec = json_pack("{s:b, s:{s:s}}", "keep", 0, "labels", "team", "x");
	return r;
}

static void test_a_life(void **state)
{
	(void)state;
	char path[32];
	struct store *s = open_new(path);
	struct row r = row_of("a"), got = {0};
	assert_int_equal(store_add(s, &r), STORE_OK);
	assert_int_equal(store_add(s, &r), STORE_FAILED); /* the id is there */
	r.state = RUNNING;
	assert_int_equal(store_enter(s, &r), STORE_REFUSED);
	r.state = CREATING;
	assert_int_equal(store_enter(s, &r), STORE_OK);
	r.state = FAILED;
	r.has_exit = true;
	r.exit_code = 3;
	assert_int_equal(store_enter(s, &r), STORE_OK);
	assert_int_equal(store_get(s, "a", &got), STORE_OK);
	assert_int_equal(got.state, FAILED);
	assert_true(got.has_exit && got.exit_code == 3);
	json_t *history = store_history(s, "a");
	assert_int_equal(json_array_size(history), 3);
	json_decref(history);
	row_free(&got);
	assert_int_equal(store_get(s, "b", &got), STORE_NONE);
	snprintf(r.id, sizeof(r.id), "b");
	assert_int_equal(store_enter(s, &r), STORE_NONE);
	row_free(&r);
	close_all(&s, path);
}

static void test_all_or_nothing(void **state)
{
	(void)state;
	char path[32];
	struct store *s = open_new(path);
	struct row r = row_of("a"), got = {0};
	const struct answer a = {201, "{}", NULL};
	struct answer known = {0};
	bool same = false;
	assert_int_equal(store_begin(s), STORE_OK);
	assert_int_equal(store_add(s, &r), STORE_OK);
	assert_int_equal(store_keep_answer(s, "key", "sha", &a, 5), STORE_OK);
	store_roll_back(s);
	assert_int_equal(store_get(s, "a", &got), STORE_NONE);
	assert_int_equal(store_find_answer(s, "key", "sha", &known, &same), STORE_NONE);
	assert_int_equal(store_keep_answer(s, "key", "sha", &a, 5), STORE_OK);
	assert_int_equal(store_find_answer(s, "key", "other", &known, &same), STORE_OK);
	assert_false(same);
	answer_free(&known);
	store_forget_answers(s, 6);
	assert_int_equal(store_find_answer(s, "key", "sha", &known, &same), STORE_NONE);
	row_free(&r);
	close_all(&s, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_may_follow),
		cmocka_unit_test(test_a_life),
		cmocka_unit_test(test_all_or_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
