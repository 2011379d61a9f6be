/* The store: rows, and that no state follows another that it may not follow. */
#include "orchestrator/service/store.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* ---- deleted ---- */

static void end_with(struct store *s, struct row *r, json_t *usage)
{
	r->state = CREATING;
	assert_int_equal(store_enter(s, r), STORE_OK);
	r->state = FAILED;
	r->usage = usage;
	r->ended_us = 5;
	assert_int_equal(store_enter(s, r), STORE_OK);
}

static void delete (struct store *s, struct row *r)
{
	r->state = DELETED;
	assert_int_equal(store_enter(s, r), STORE_OK);
}

static json_t *some_usage(void)
{
	return json_pack("{s:f, s:f, s:f, s:i, s:{s:i, s:i, s:i, s:i}, s:{s:f, s:s}}", "wall_seconds", 2.0,
			 "cpu_seconds", 1.0, "gb_seconds", 0.5, "egress_bytes", 7, "decisions", "allow", 1, "flag", 2,
			 "block", 3, "error", 4, "cost", "amount", 0.25, "currency", "EUR");
}

static bool file_has(const char *path, const char *ending, const char *mark)
{
	static char bytes[1 << 20];
	char whole[64];
	snprintf(whole, sizeof(whole), "%s%s", path, ending);
	FILE *f = fopen(whole, "re");
	size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		fclose(f);
	return n > 0 && memmem(bytes, n, mark, strlen(mark));
}

static void test_nothing_is_left(void **state)
{
	(void)state;
	char path[32];
	struct store *s = open_new(path);
	struct row r = row_of("a"), got = {0};
	const struct answer of_create = {201, "{\"x\":\"mark\"}", "/api/v1/sandboxes/a"},
			    of_tool = {200, "{\"y\":\"mark\"}", NULL};
	struct answer known = {0};
	bool same;
	json_object_set_new(r.spec, "env", json_pack("{s:s}", "A", "mark"));
	json_object_set_new(r.spec, "command", json_pack("[s]", "mark"));
	r.message = strdup("mark");
	assert_int_equal(store_add(s, &r), STORE_OK);
	assert_int_equal(store_keep_answer(s, " key", "sha", &of_create, 5), STORE_OK);
	assert_int_equal(store_keep_answer(s, "a key", "sha", &of_tool, 5), STORE_OK);
	assert_int_equal(store_keep_answer(s, "ab key", "sha", &(struct answer){200, "{}", NULL}, 5), STORE_OK);
	end_with(s, &r, some_usage());
	assert_true(file_has(path, "", "mark") || file_has(path, "-wal", "mark"));
	delete (s, &r);
	assert_false(file_has(path, "", "mark") || file_has(path, "-wal", "mark"));
	assert_int_equal(store_get(s, "a", &got), STORE_OK);
	assert_string_equal(json_string_value(json_object_get(json_object_get(got.spec, "labels"), "team")), "x");
	assert_null(got.message);
	row_free(&got);
	assert_int_equal(store_find_answer(s, "a key", "sha", &known, &same), STORE_NONE);
	assert_int_equal(store_find_answer(s, " key", "sha", &known, &same), STORE_OK);
	assert_true(same && known.status == 410 && known.body[0] == '\0');
	answer_free(&known);
	assert_int_equal(store_find_answer(s, "ab key", "sha", &known, &same), STORE_OK);
	answer_free(&known);
	row_free(&r);
	close_all(&s, path);
}

/* ---- sums ---- */

static void test_sums(void **state)
{
	(void)state;
	char path[32];
	struct store *s = open_new(path);
	struct row r = row_of("a"), without = row_of("b");
	json_t *list;
	json_object_del(json_object_get(without.spec, "labels"), "team");
	assert_int_equal(store_add(s, &r), STORE_OK);
	assert_int_equal(store_add(s, &without), STORE_OK);
	end_with(s, &r, some_usage());
	assert_int_equal(store_usage(s, "team", 0, &list), STORE_OK);
	assert_int_equal(json_array_size(list), 2);
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "value")));
	json_t *row = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(row, "value")), "x");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "by_state"), "failed")), 1);
	assert_true(json_real_value(json_object_get(row, "wall_seconds")) == 2.0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "decisions"), "error")), 4);
	assert_string_equal(json_string_value(json_object_get(json_object_get(row, "cost"), "currency")), "EUR");
	json_decref(list);
	delete (s, &r);
	store_forget_old(s, 6, 0); /* the record goes, the numbers stay */
	assert_int_equal(store_get(s, "a", &(struct row){0}), STORE_NONE);
	assert_int_equal(store_usage(s, NULL, 0, &list), STORE_OK);
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "sandboxes")), 2);
	assert_true(json_real_value(json_object_get(json_array_get(list, 0), "cpu_seconds")) == 1.0);
	json_decref(list);
	store_forget_old(s, 6, 6);
	assert_int_equal(store_usage(s, NULL, 0, &list), STORE_OK);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "sandboxes")),
			 1); /* it is not deleted */
	json_decref(list);
	row_free(&r);
	row_free(&without);
	close_all(&s, path);
}

/* With a sum that looks at every pair this takes minutes. */
static void test_sums_over_many(void **state)
{
	(void)state;
	enum { MANY = 20000 };
	char path[32], id[16];
	struct store *s = open_new(path);
	struct row r = row_of("a");
	json_t *list;
	struct timespec before, after;
	assert_int_equal(store_begin(s), STORE_OK);
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "sb-%d", i);
		memcpy(r.id, id, sizeof(id));
		assert_int_equal(store_add(s, &r), STORE_OK);
	}
	assert_int_equal(store_commit(s), STORE_OK);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	assert_int_equal(store_usage(s, "team", 0, &list), STORE_OK);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "sandboxes")), MANY);
	assert_true(after.tv_sec - before.tv_sec < 3);
	json_decref(list);
	row_free(&r);
	close_all(&s, path);
}

/* ---- bounds, and what is not known ---- */

static void test_answers_are_bounded(void **state)
{
	(void)state;
	char path[32], key[16];
	struct store *s = open_new(path);
	const struct answer small = {200, "{}", NULL};
	struct answer known = {0};
	bool same;
	assert_int_equal(store_begin(s), STORE_OK);
	for (int i = 0; i <= LIMIT_SERVE_ANSWERS; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(store_keep_answer(s, key, "sha", &small, i), STORE_OK);
	}
	assert_int_equal(store_commit(s), STORE_OK);
	assert_int_equal(store_find_answer(s, key, "sha", &known, &same), STORE_OK);
	answer_free(&known);
	assert_int_equal(store_find_answer(s, "k0", "sha", &known, &same), STORE_NONE);
	close_all(&s, path);
}

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void count_rows(void *arg, const struct row *r)
{
	(void)r;
	++*(int *)arg;
}

static void test_a_state_that_is_not_known(void **state)
{
	(void)state;
	char path[32];
	int n = 0;
	struct store *s = open_new(path);
	struct row r = row_of("a"), got = {0};
	assert_int_equal(store_add(s, &r), STORE_OK);
	run_sql(path, "UPDATE sandbox SET state='frozen'");
	assert_int_equal(store_get(s, "a", &got), STORE_FAILED);
	assert_int_equal(store_list(s, &(struct store_filter){.limit = 9}, count_rows, &n), STORE_FAILED);
	assert_int_equal(n, 0);
	row_free(&r);
	close_all(&s, path);
}

/* What version 1 has stored is summed up by this one. */
static void test_an_older_file(void **state)
{
	(void)state;
	char path[32];
	struct store *s = open_new(path);
	struct row r = row_of("a");
	json_t *list;
	assert_int_equal(store_add(s, &r), STORE_OK);
	end_with(s, &r, some_usage());
	store_close(&s);
	run_sql(path, "DROP TABLE workflow; DROP TABLE step; DROP TABLE used; DROP INDEX label_seq; DROP INDEX "
		      "sandbox_ended; DROP INDEX answer_at; DROP INDEX"
		      " answer_location; ALTER TABLE answer DROP COLUMN bytes; PRAGMA user_version=1");
	s = store_open(path);
	assert_non_null(s);
	assert_int_equal(store_usage(s, "team", 0, &list), STORE_OK);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "egress_bytes")), 7);
	json_decref(list);
	row_free(&r);
	close_all(&s, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_may_follow),
		cmocka_unit_test(test_a_life),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_sums_over_many),
		cmocka_unit_test(test_answers_are_bounded),
		cmocka_unit_test(test_a_state_that_is_not_known),
		cmocka_unit_test(test_an_older_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
