/* --auth: the file, and who gets in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/proc/sandbox_id.h"
#include "proxy/auth.h"

static struct auth *load(const char *text)
{
	char path[] = "/tmp/cage-auth-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	struct auth *a = auth_load(path);
	unlink(path);
	return a;
}

static enum reason check(const struct auth *a, const char *value, struct slice *sandbox)
{
	struct field f = {
		.name = SLICE("Proxy-Authorization"), .value = slice_str(value), .id = FIELD_PROXY_AUTHORIZATION};
	struct message m = {.fields = &f, .n_fields = 1};
	return auth_check(a, &m, sandbox);
}

static void says_which_sandbox(void **state)
{
	(void)state;
	struct auth *a = load("# who\nbox1:0123456789abcdef\n\nbox2:fedcba9876543210\n");
	struct slice box = SLICE_NONE;
	struct message nothing = {0};
	assert_non_null(a);
	/* box2:fedcba9876543210 */
	assert_int_equal(check(a, "Basic Ym94MjpmZWRjYmE5ODc2NTQzMjEw", &box), REASON_NONE);
	assert_true(slice_eq(box, SLICE("box2")));
	assert_int_equal(check(a, "basic Ym94MTowMTIzNDU2Nzg5YWJjZGVm", &box), REASON_NONE);
	assert_true(slice_eq(box, SLICE("box1")));
	assert_int_equal(auth_check(a, &nothing, &box), REASON_AUTH_REQUIRED);
	auth_free(&a);
	assert_null(a);
}

static void everything_else_stays_out(void **state)
{
	(void)state;
	struct auth *a = load("box1:0123456789abcdef\n");
	struct slice box = SLICE_NONE;
	const char *const bad[] = {"",
				   "Basic",
				   "Basic ",
				   "Basic ====",
				   "Basic !!!!",
				   "Basic Ym94MTowMTIzNDU2Nzg5YWJjZGV",  /* not whole */
				   "Basic Ym94MTowMTIzNDU2Nzg5YWJjZGU=", /* a byte short */
				   "Basic Ym94MjowMTIzNDU2Nzg5YWJjZGVm", /* another's token */
				   "Bearer 0123456789abcdef"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(check(a, bad[i], &box), REASON_AUTH_FAILED);
	assert_int_equal(box.len, 0);
	auth_free(&a);
}

static void pairs(void **state)
{
	(void)state;
	struct auth *a = load("box1:0123456789abcdef\nbox2:a:b:c:0123456789\n");
	struct slice box = SLICE_NONE;
	char longest[255];
	memset(longest, 'x', sizeof(longest));
	const struct {
		struct slice id, token;
	} bad[] = {
		{SLICE(""), SLICE("")},
		{SLICE("box1"), SLICE("")},
		{SLICE("box1"), SLICE("0123456789abcde")},
		{SLICE("box1"), SLICE("0123456789abcdef\0")},
		{SLICE("box1\0"), SLICE("0123456789abcdef")},
		{SLICE("box2"), SLICE("0123456789abcdef")},
		{SLICE("box2:a"), SLICE("b:c:0123456789")}, /* the same line, cut elsewhere */
		{slice_of(longest, sizeof(longest)), slice_of(longest, sizeof(longest))},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(auth_check_pair(a, bad[i].id, bad[i].token, &box), REASON_AUTH_FAILED);
	assert_int_equal(box.len, 0);
	assert_int_equal(auth_check_pair(a, SLICE("box1"), SLICE("0123456789abcdef"), &box), REASON_NONE);
	assert_true(slice_eq(box, SLICE("box1")));
	assert_int_equal(auth_check_pair(a, SLICE("box2"), SLICE("a:b:c:0123456789"), &box), REASON_NONE);
	assert_true(slice_eq(box, SLICE("box2")));
	auth_free(&a);
}

static void bad_files_are_refused(void **state)
{
	(void)state;
	assert_null(load(""));
	assert_null(load("no colon here, and long enough\n"));
	assert_null(load(":0123456789abcdef\n"));
	assert_null(load("box:short\n"));
	assert_null(load("a b:0123456789abcdef\n"));
	assert_null(load("a@b:0123456789abcdef\n"));
	assert_null(auth_load("/nonexistent/auth"));
}

static void sandbox_ids(void **state)
{
	(void)state;
	char longest[65];
	memset(longest, 'a', sizeof(longest));
	assert_true(sandbox_id_is_good(SLICE("Box-1_a.b")));
	assert_true(sandbox_id_is_good(slice_of(longest, 64)));
	assert_false(sandbox_id_is_good(slice_of(longest, 65)));
	assert_false(sandbox_id_is_good(SLICE_NONE));
	for (int c = 0; c < 256; c++) {
		char byte = (char)c;
		bool is_good = c != 0 && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", c);
		assert_int_equal(sandbox_id_is_good(slice_of(&byte, 1)), is_good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_which_sandbox),
		cmocka_unit_test(everything_else_stays_out),
		cmocka_unit_test(pairs),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(sandbox_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
