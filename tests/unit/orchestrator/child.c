/* Helpers of the service: how many there can be, and how much one can say. */
#include "orchestrator/service/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#include "core/base/limits.h"

struct outcome {
	struct event_base *base;
	int status;
	size_t said;
	char first, last;
};

static void on_done(void *arg, int status, struct slice said)
{
	struct outcome *o = arg;
	o->status = status;
	o->said = said.len;
	o->first = said.len > 0 ? said.ptr[0] : 0;
	o->last = said.len > 0 ? said.ptr[said.len - 1] : 0;
	event_base_loopbreak(o->base);
}

/* Until it is killed by whoever has started it. */
static int wait_long(const char *text, const void *with)
{
	(void)text, (void)with;
	alarm(30);
	pause();
	return 0;
}

static void test_so_many_wait(void **state)
{
	(void)state;
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	const struct child_spec spec = {.function = wait_long};
	for (size_t i = 0; i < LIMIT_SERVE_CHILDREN + LIMIT_SERVE_CHILDREN_WAITING; i++)
		assert_true(child_run(c, &spec));
	assert_false(child_run(c, &spec));
	children_free(&c);
	event_base_free(base);
}

static int say_much(const char *text, const void *with)
{
	for (size_t i = 0; i < *(const size_t *)with; i++)
		putchar(text[i % 2]);
	return fflush(stdout) == 0 ? 7 : 1;
}

static struct outcome run(size_t bytes, size_t most)
{
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	struct outcome o = {.base = base};
	const struct child_spec spec = {
		.function = say_much, .text = "ab", .with = &bytes, .most_said = most, .done = on_done, .arg = &o};
	assert_true(child_run(c, &spec));
	event_base_dispatch(base);
	children_free(&c);
	event_base_free(base);
	return o;
}

static void test_so_much_is_heard(void **state)
{
	(void)state;
	struct outcome o = run(LIMIT_SERVE_CHILD_OUT + 5000, 0);
	assert_int_equal(o.said, LIMIT_SERVE_CHILD_OUT);
	assert_true(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 7);
	o = run(LIMIT_SERVE_SWEPT + 5000, LIMIT_SERVE_SWEPT);
	assert_int_equal(o.said, LIMIT_SERVE_SWEPT);
	o = run(10, 3);
	assert_int_equal(o.said, 3);
	assert_true(o.first == 'a' && o.last == 'a');
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_so_many_wait),
					   cmocka_unit_test(test_so_much_is_heard)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
