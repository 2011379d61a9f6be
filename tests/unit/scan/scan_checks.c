/* The checks of values, each with what passes and what is one character off. */
#include "tests/unit/scan/fixture.h"

#include "inspectors/scan/checks.h"

static bool passes(enum format_check check, const char *value)
{
	struct format f = {.check = check};
	return value_passes(&f, slice_str(value));
}

static void entropy(void **state)
{
	(void)state;
	char all[256];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	assert_true(value_entropy(SLICE_NONE) == 0);
	assert_true(value_entropy(SLICE("aaaaaaaa")) == 0);
	assert_float_equal(value_entropy(SLICE("abababab")), 1, 1e-6);
	assert_float_equal(value_entropy(SLICE("aaab")), 0.811278, 1e-6);
	assert_float_equal(value_entropy(SLICE("0123456789abcdef")), 4, 1e-6);
	assert_float_equal(value_entropy(slice_of(all, sizeof(all))), 8, 1e-6);
	struct format f = {.min_entropy = 1};
	assert_true(value_passes(&f, SLICE("abab")));
	assert_false(value_passes(&f, SLICE("abaa")));
}

static void jwt(void **state)
{
	(void)state;
	assert_true(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln"));
	assert_true(passes(CHECK_JWT, "eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0.eyJhIjoxfQ.c"));
	assert_false(passes(CHECK_JWT, "eyJ0eXAiOiJKV1QifQ.eyJhIjoxfQ.c2ln")); /* no alg */
	assert_false(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ"));
	assert_false(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ."));
	assert_false(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9..c2ln"));
	assert_false(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln.c2ln"));
	assert_false(passes(CHECK_JWT, "WyJhbGciXQ.eyJhIjoxfQ.c2ln")); /* a list */
	assert_false(passes(CHECK_JWT, "eyJhbGciOiJIUzI1NiJ9A.eyJhIjoxfQ.c2ln"));
	assert_false(passes(CHECK_JWT, ""));
}

static void crc32(void **state)
{
	(void)state;
	assert_true(passes(CHECK_CRC32, "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"));
	assert_true(passes(CHECK_CRC32, "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"));
	assert_false(passes(CHECK_CRC32, "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18"));
	assert_false(passes(CHECK_CRC32, "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkK0mLq17"));
	assert_false(passes(CHECK_CRC32, "ghp_000000"));
	assert_false(passes(CHECK_CRC32, ""));
}

static void luhn(void **state)
{
	(void)state;
	assert_true(passes(CHECK_LUHN, "4111111111111111"));
	assert_true(passes(CHECK_LUHN, "4111-1111 1111-1111"));
	assert_true(passes(CHECK_LUHN, "378282246310005"));
	assert_false(passes(CHECK_LUHN, "4111111111111112"));
	assert_false(passes(CHECK_LUHN, "4111111111111l11"));
	assert_false(passes(CHECK_LUHN, "0"));
	assert_false(passes(CHECK_LUHN, ""));
}

static void base64(void **state)
{
	(void)state;
	static const char *const good[] = {"YQ==", "YQ", "YWI=", "YWI", "YWJj", "-_-_", "+/+/"};
	static const char *const bad[] = {"", "=", "==", "Y", "YR==", "YWJ=", "YQ=", "YWJj=", "YW=j", "Y.Jj", "YWJjY"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!passes(CHECK_BASE64, good[i]))
			fail_msg("%s is base64", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (passes(CHECK_BASE64, bad[i]))
			fail_msg("%s is not base64", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entropy), cmocka_unit_test(jwt),    cmocka_unit_test(crc32),
		cmocka_unit_test(luhn),    cmocka_unit_test(base64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
