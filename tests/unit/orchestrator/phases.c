/* What may follow in the life of a sandbox. */
#include "orchestrator/service/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after them */
#include <cmocka.h>

static const char *const rows[PHASES] = {
	/*                   WAITING STARTING LINKED READY REAPING COUNTING OVER */
	[PHASE_WAITING] = "yy....y", [PHASE_STARTING] = "..y.yy.", [PHASE_LINKED] = ".y.yy..",
	[PHASE_READY] = ".y..y..",   [PHASE_REAPING] = ".y...y.",  [PHASE_COUNTING] = "......y",
	[PHASE_OVER] = ".......",
};

static void test_which_may_follow(void **state)
{
	(void)state;
	for (enum phase from = PHASE_WAITING; from < PHASES; from++)
		for (enum phase to = PHASE_WAITING; to < PHASES; to++)
			assert_int_equal(phase_may_follow(from, to), rows[from][to] == 'y');
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_which_may_follow)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
