/* Base64 has one spelling. */
#include "core/base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after them */
#include <cmocka.h>

static const struct row {
	const char *text, *bytes; /* NULL: it is refused */
} rows[] = {
	{"", ""},        {"Zg==", "f"},         {"Zm8=", "fo"},
	{"Zm9v", "foo"}, {"Zm9vYmE=", "fooba"}, {"+/+/", "\xfb\xff\xbf"},
	{"Zg", NULL},    {"Zg=", NULL},         {"Zh==", NULL},
	{"Zm9=", NULL},  {"Zg==Zg==", NULL},    {"====", NULL},
	{"Z===", NULL},  {"Z=g=", NULL},        {"Zm9v\n", NULL},
	{"Zm 9", NULL},  {"-_-_", NULL},        {"Zm9v====", NULL},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[16];
		size_t n;
		bool ok = base64_read(slice_str(rows[i].text), out, sizeof(out), &n);
		if (ok) {
			char again[16];
			base64_write(slice_of(out, n), again);
			assert_true(slice_eq(slice_of(again, BASE64_DIGITS(n)), slice_str(rows[i].text)));
		}
		if (ok != (rows[i].bytes != NULL) || (ok && !slice_eq(slice_of(out, n), slice_str(rows[i].bytes))))
			fail_msg("\"%s\": %s", rows[i].text, ok ? "read" : "refused");
	}
}

static void test_room(void **state)
{
	(void)state;
	char out[3];
	size_t n;
	assert_true(base64_read(SLICE("Zm9v"), out, 3, &n));
	assert_false(base64_read(SLICE("Zm9v"), out, 2, &n));
	assert_false(base64_read(SLICE("Zm9vZg=="), out, 3, &n));
	assert_true(base64_read(SLICE_NONE, NULL, 0, &n));
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_room)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
