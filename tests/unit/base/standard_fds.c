/* Descriptors that were left closed. A child tries it, as the test needs its own. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/standard_fds.h"

enum { NONE_FREE = 77 };

static int exit_code_of(void (*attempt)(void))
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		attempt();
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void close_two(void)
{
	struct stat null, now[2];
	close(0);
	close(2);
	const int code = standard_fds_open();
	const int good = code == 0 && stat("/dev/null", &null) == 0 && fstat(0, &now[0]) == 0 &&
			 fstat(2, &now[1]) == 0 && now[0].st_rdev == null.st_rdev && now[1].st_rdev == null.st_rdev;
	_exit(good ? 0 : 1);
}

static void missing_ones_are_null(void **state)
{
	(void)state;
	assert_int_equal(exit_code_of(close_two), 0);
}

static void allow_no_more(void)
{
	const struct rlimit none = {0, 0};
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		_exit(1);
}

static void close_one_for_good(void)
{
	close(1);
	allow_no_more();
	_exit(standard_fds_open() == -1 && errno == EMFILE ? NONE_FREE : 0);
}

static void one_that_stays_missing_is_told(void **state)
{
	(void)state;
	assert_int_equal(exit_code_of(close_one_for_good), NONE_FREE);
}

static void close_none(void)
{
	allow_no_more();
	_exit(standard_fds_open());
}

static void nothing_is_opened_where_none_is_missing(void **state)
{
	(void)state;
	assert_int_equal(exit_code_of(close_none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ones_are_null),
		cmocka_unit_test(one_that_stays_missing_is_told),
		cmocka_unit_test(nothing_is_opened_where_none_is_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
