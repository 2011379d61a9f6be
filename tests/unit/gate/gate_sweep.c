/* Ending what is left, with a list of children that has room for four (few_swept.h). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/sweep.h"

enum { ROOM = 4 };

static pid_t children[ROOM];

static pid_t child_that_waits(void)
{
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	assert_true(child > 0);
	return child;
}

static void start(size_t n)
{
	for (size_t i = 0; i < n; i++)
		children[i] = child_that_waits();
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROOM; i++) {
		if (children[i] <= 0)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
	return 0;
}

static void those_that_are_spared_are_left(void **state)
{
	(void)state;
	assert_int_equal(sweep_begin(), 0);
	start(ROOM - 1);
	pid_t other = child_that_waits();
	assert_int_equal(sweep_end(children, ROOM - 1), 1);
	assert_int_equal(waitpid(other, NULL, WNOHANG), -1);
	for (size_t i = 0; i < ROOM - 1; i++)
		assert_int_equal(waitpid(children[i], NULL, WNOHANG), 0);
}

/* There may be others behind those that it has room for. */
static void a_full_list_is_not_the_end(void **state)
{
	(void)state;
	assert_int_equal(sweep_begin(), 0);
	start(ROOM);
	assert_int_equal(sweep_end(children, ROOM), 0);
}

static void more_before_than_can_be_known(void **state)
{
	(void)state;
	start(ROOM);
	assert_int_equal(sweep_begin(), -1);
	assert_int_equal(errno, E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(those_that_are_spared_are_left, tear_down),
		cmocka_unit_test_teardown(a_full_list_is_not_the_end, tear_down),
		cmocka_unit_test_teardown(more_before_than_can_be_known, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
