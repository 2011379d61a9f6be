/* What may follow in the life of an identity at a gateway, and of a change there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after them */
#include <cmocka.h>

#include "orchestrator/aci/split.h"
#include "orchestrator/gateway/change.h"

static const char *const of_split[SPLIT_STATES] = {
	/*                 IDLE PUTS LOGS TELLS DELETES GONE */
	[SPLIT_IDLE] = ".yyyy.",  [SPLIT_PUTS] = "y.....",    [SPLIT_LOGS] = "yyyy..",
	[SPLIT_TELLS] = "...yy.", [SPLIT_DELETES] = ".....y", [SPLIT_GONE] = "......",
};

static const char *const of_change[CHANGE_STATES] = {
	/*                   WAITS CHECKS PRINTS RELOADS RESTORES SETTLES DONE */
	[CHANGE_WAITS] = ".yyy..y",   [CHANGE_CHECKS] = "..y...y",   [CHANGE_PRINTS] = "...y..y",
	[CHANGE_RELOADS] = "....yyy", [CHANGE_RESTORES] = "......y", [CHANGE_SETTLES] = "......y",
	[CHANGE_DONE] = ".......",
};

static void test_of_an_identity(void **state)
{
	(void)state;
	for (enum split_state from = SPLIT_IDLE; from < SPLIT_STATES; from++)
		for (enum split_state to = SPLIT_IDLE; to < SPLIT_STATES; to++)
			assert_int_equal(split_may_follow(from, to), of_split[from][to] == 'y');
}

static void test_of_a_change(void **state)
{
	(void)state;
	for (enum change_state from = CHANGE_WAITS; from < CHANGE_STATES; from++)
		for (enum change_state to = CHANGE_WAITS; to < CHANGE_STATES; to++)
			assert_int_equal(change_may_follow(from, to), of_change[from][to] == 'y');
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_of_an_identity), cmocka_unit_test(test_of_a_change)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
