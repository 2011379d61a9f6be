/* Helpers of the service: how many there can be, and how much one can say. */
#include "orchestrator/service/child.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#include "core/base/limits.h"

struct outcome {
	struct event_base *base;
	int status;
	size_t calls;
	size_t said;
	char first, last;
};

static void on_done(void *arg, int status, struct slice said)
{
	struct outcome *o = arg;
	o->status = status;
	o->calls++;
	o->said = said.len;
	o->first = said.len > 0 ? said.ptr[0] : 0;
	o->last = said.len > 0 ? said.ptr[said.len - 1] : 0;
	event_base_loopbreak(o->base);
}

/* Until nobody reads what it says any more: whoever has started it is gone. */
static int wait_long(const char *text, const void *with)
{
	struct pollfd said = {.fd = STDOUT_FILENO};
	(void)text, (void)with;
	return poll(&said, 1, 30000) == 1 ? 0 : 1;
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

static void test_so_long_it_may_take(void **state)
{
	(void)state;
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	struct outcome o = {.base = base};
	const struct child_spec spec = {.function = wait_long, .most_ms = 50, .done = on_done, .arg = &o};
	assert_true(child_run(c, &spec));
	event_base_dispatch(base);
	assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGKILL);
	children_free(&c);
	event_base_free(base);
}

static int compute(const char *text, const void *with)
{
	volatile bool goes_on = true;
	(void)text, (void)with;
	while (goes_on)
		;
	return 0;
}

static void test_so_long_it_may_compute(void **state)
{
	(void)state;
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	struct outcome o = {.base = base};
	const struct child_spec spec = {.function = compute, .most_cpu_s = 1, .done = on_done, .arg = &o};
	assert_true(child_run(c, &spec));
	event_base_dispatch(base);
	assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGXCPU);
	children_free(&c);
	event_base_free(base);
}

/* Without a descriptor for its pipe. */
static bool run_in_vain(struct children *c, const struct child_spec *spec)
{
	struct rlimit limit, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool ok = child_run(c, spec);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return ok;
}

/* Who asks for a helper still holds what `done` lets go. */
static void test_one_that_cannot_start_is_told_of_later(void **state)
{
	(void)state;
	const size_t many = LIMIT_SERVE_CHILDREN + 3;
	size_t bytes = 1;
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	struct outcome o = {.base = base}, after = {.base = base};
	const struct child_spec spec = {.function = say_much, .text = "ab", .with = &bytes, .done = on_done, .arg = &o};
	struct child_spec next = spec;
	next.arg = &after;
	for (size_t i = 0; i < LIMIT_SERVE_CHILDREN; i++)
		assert_true(run_in_vain(c, &spec));
	for (size_t i = LIMIT_SERVE_CHILDREN; i < many; i++)
		assert_true(child_run(c, &spec)); /* they wait for the place of one */
	assert_true(child_run(c, &next));
	assert_int_equal(o.calls, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(o.calls, LIMIT_SERVE_CHILDREN);
	assert_true(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 127);
	while (o.calls < many || after.calls == 0)
		assert_int_equal(event_base_dispatch(base), 0);
	assert_true(WIFEXITED(after.status) && WEXITSTATUS(after.status) == 7);
	children_free(&c);
	event_base_free(base);
}

/* A descendant holds the pipe on. */
static int leave_one(const char *text, const void *with)
{
	(void)text, (void)with;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		pause();
		_exit(0);
	}
	printf("%d", (int)pid);
	return fflush(stdout) == 0 ? 7 : 1;
}

static void end_it(void *arg, int status, struct slice said)
{
	uint64_t pid = 0;
	assert_true(slice_to_u64(said, INT32_MAX, &pid) && pid > 1);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0); /* it lives: nobody has waited for it */
	on_done(arg, status, said);
}

static void test_one_that_leaves_its_pipe_to_another(void **state)
{
	(void)state;
	struct event_base *base = event_base_new();
	struct children *c = children_new(base);
	struct outcome o = {.base = base};
	const struct child_spec spec = {.function = leave_one, .done = end_it, .arg = &o};
	assert_true(child_run(c, &spec));
	event_base_dispatch(base);
	assert_true(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 7);
	children_free(&c);
	event_base_free(base);
}

static void test_why_one_has_failed(void **state)
{
	(void)state;
	assert_null(child_failure(W_EXITCODE(0, 0)));
	assert_string_equal(child_failure(W_EXITCODE(CHILD_UNFOUND, 0)), "the helper could not be started");
	assert_string_equal(child_failure(W_EXITCODE(CHILD_UNPREPARED, 0)), "the helper could not be started");
	assert_string_equal(child_failure(W_EXITCODE(EBUSY, 0)), strerror(EBUSY));
	assert_string_equal(child_failure(W_EXITCODE(0, SIGKILL)), "it took too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_so_many_wait),
					   cmocka_unit_test(test_so_much_is_heard),
					   cmocka_unit_test(test_so_long_it_may_take),
					   cmocka_unit_test(test_so_long_it_may_compute),
					   cmocka_unit_test(test_one_that_cannot_start_is_told_of_later),
					   cmocka_unit_test(test_one_that_leaves_its_pipe_to_another),
					   cmocka_unit_test(test_why_one_has_failed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
