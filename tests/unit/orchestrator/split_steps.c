/* What may follow in the life of an identity at a gateway, and of a change there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after them */
#include <cmocka.h>

#include "orchestrator/aci/split.h"
#include "orchestrator/aci/state.h"
#include "orchestrator/gateway/change.h"

static const char *const of_split[SPLIT_STATES] = {
	/*                 NONE COMES IDLE PUTS LOGS TELLS DELETES GONE */
	[SPLIT_NONE] = ".y....y.", [SPLIT_COMES] = "y.y.....", [SPLIT_IDLE] = "...yyy..",    [SPLIT_PUTS] = "..y.....",
	[SPLIT_LOGS] = "..yyyy..", [SPLIT_TELLS] = ".....yy.", [SPLIT_DELETES] = ".......y", [SPLIT_GONE] = "........",
};

static const char *const of_group[ACI_STATES] = {
	/*                  WAITS REGISTERS LOOKS QUOTA CREATES CLEARS RUNS STOPS TELLS DELETES LEAVES ENDED */
	[ACI_WAITS] = ".yy........y",   [ACI_REGISTERS] = "..y.......y.", [ACI_LOOKS] = "...yyyy..yyy",
	[ACI_QUOTA] = "..y.y....y..",   [ACI_CREATES] = "..y..yy..y..",   [ACI_CLEARS] = "..y......y..",
	[ACI_RUNS] = ".......yyy..",    [ACI_STOPS] = "........yy..",     [ACI_TELLS] = ".........y..",
	[ACI_DELETES] = "..........yy", [ACI_LEAVES] = "...........y",    [ACI_ENDED] = "............",
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
	for (enum split_state from = SPLIT_NONE; from < SPLIT_STATES; from++)
		for (enum split_state to = SPLIT_NONE; to < SPLIT_STATES; to++)
			assert_int_equal(split_may_follow(from, to), of_split[from][to] == 'y');
}

static void test_of_a_group(void **state)
{
	(void)state;
	for (enum aci_state from = ACI_WAITS; from < ACI_STATES; from++)
		for (enum aci_state to = ACI_WAITS; to < ACI_STATES; to++)
			assert_int_equal(aci_may_follow(from, to), of_group[from][to] == 'y');
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_of_an_identity), cmocka_unit_test(test_of_a_group),
					   cmocka_unit_test(test_of_a_change)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
