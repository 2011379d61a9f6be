/* The words for statuses and reasons. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/reason.h"
#include "core/base/status.h"

static void every_reason_has_its_own_code(void **state)
{
	(void)state;
	assert_int_equal(reason_code(REASON_NONE).len, 0);
	assert_true(slice_eq(reason_code(REASON_HOST_NOT_ALLOWED), SLICE("host.not_allowed")));
	assert_true(slice_eq(reason_code(REASON_POLICY_CHANGED), SLICE("policy.changed")));
	for (unsigned r = 1; r < REASON_COUNT; r++) {
		struct slice code = reason_code((enum reason)r);
		assert_true(code.len > 0 && slice_find(code, '.') < code.len);
		for (unsigned other = 0; other < r; other++)
			assert_false(slice_eq(code, reason_code((enum reason)other)));
		for (size_t i = 0; i < code.len; i++)
			assert_true((code.ptr[i] >= 'a' && code.ptr[i] <= 'z') || code.ptr[i] == '.' ||
				    code.ptr[i] == '_');
	}
	assert_true(slice_eq(reason_code(REASON_COUNT), SLICE("internal.error")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_its_own_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
