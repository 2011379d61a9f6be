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

#define N 4

static struct seat seats[N];

static bool load(const char *text)
{
	char path[] = "/tmp/cage-auth-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	memset(seats, 0, sizeof(seats));
	bool ok = auth_read_file(path, seats, N);
	unlink(path);
	return ok;
}

static enum reason check(const char *value, size_t *seat)
{
	struct field f = {
		.name = SLICE("Proxy-Authorization"), .value = slice_str(value), .id = FIELD_PROXY_AUTHORIZATION};
	struct message m = {.fields = &f, .n_fields = 1};
	return auth_check(seats, N, &m, seat);
}

static void says_which_sandbox(void **state)
{
	(void)state;
	assert_true(load("# who\nbox1:0123456789abcdef\n\nbox2:fedcba9876543210\n"));
	size_t seat = 0;
	struct message nothing = {0};
	/* box2:fedcba9876543210 */
	assert_int_equal(check("Basic Ym94MjpmZWRjYmE5ODc2NTQzMjEw", &seat), REASON_NONE);
	assert_true(slice_eq(seat_id(&seats[seat]), SLICE("box2")));
	assert_int_equal(check("basic Ym94MTowMTIzNDU2Nzg5YWJjZGVm", &seat), REASON_NONE);
	assert_true(slice_eq(seat_id(&seats[seat]), SLICE("box1")));
	assert_int_equal(auth_check(seats, N, &nothing, &seat), REASON_AUTH_REQUIRED);
}

static void everything_else_stays_out(void **state)
{
	(void)state;
	assert_true(load("box1:0123456789abcdef\n"));
	size_t seat = 0;
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
		assert_int_equal(check(bad[i], &seat), REASON_AUTH_FAILED);
	assert_int_equal(seat, 0);
}

static void pairs(void **state)
{
	(void)state;
	assert_true(load("box1:0123456789abcdef\nbox2:a:b:c:0123456789\n"));
	size_t seat = 0;
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
		assert_int_equal(auth_check_pair(seats, N, bad[i].id, bad[i].token, &seat), REASON_AUTH_FAILED);
	assert_int_equal(seat, 0);
	assert_int_equal(auth_check_pair(seats, N, SLICE("box1"), SLICE("0123456789abcdef"), &seat), REASON_NONE);
	assert_true(slice_eq(seat_id(&seats[seat]), SLICE("box1")));
	assert_int_equal(auth_check_pair(seats, N, SLICE("box2"), SLICE("a:b:c:0123456789"), &seat), REASON_NONE);
	assert_true(slice_eq(seat_id(&seats[seat]), SLICE("box2")));
}

static void bad_files_are_refused(void **state)
{
	(void)state;
	assert_false(load(""));
	assert_false(load("no colon here, and long enough\n"));
	assert_false(load(":0123456789abcdef\n"));
	assert_false(load("box:short\n"));
	assert_false(load("a b:0123456789abcdef\n"));
	assert_false(load("a@b:0123456789abcdef\n"));
	assert_false(load(
		"a:0123456789abcdef\nb:0123456789abcdef\nc:0123456789abcdef\nd:0123456789abcdef\n")); /* too many */
	assert_false(auth_read_file("/nonexistent/auth", seats, N));
}

/* Nobody sits there: that all bytes of a proof are zero lets nobody in, and nobody is at the first seat. */
static void empty_seats(void **state)
{
	(void)state;
	size_t seat = 0;
	struct seat who;
	assert_true(load("box1:0123456789abcdef\n"));
	assert_null(auth_seat(&who, SLICE("box2"), SLICE("0123456789abcdef")));
	seats[0] = seats[2] = who;
	seats[2].id_len = 0; /* it was there and has left */
	assert_int_equal(auth_check_pair(seats, N, SLICE("box2"), SLICE("0123456789abcdef"), &seat),
			 REASON_AUTH_FAILED);
	seats[2] = who;
	assert_int_equal(auth_check_pair(seats, N, SLICE("box2"), SLICE("0123456789abcdef"), &seat), REASON_NONE);
	assert_int_equal(seat, 2);
}

static void tokens_have_bounds(void **state)
{
	(void)state;
	char longest[LIMIT_SANDBOX_TOKEN + 1];
	struct seat who;
	memset(longest, 'x', sizeof(longest));
	assert_non_null(auth_seat(&who, SLICE("box"), slice_of(longest, LIMIT_SANDBOX_TOKEN_MIN - 1)));
	assert_null(auth_seat(&who, SLICE("box"), slice_of(longest, LIMIT_SANDBOX_TOKEN_MIN)));
	assert_null(auth_seat(&who, SLICE("box"), slice_of(longest, LIMIT_SANDBOX_TOKEN)));
	assert_non_null(auth_seat(&who, SLICE("box"), slice_of(longest, LIMIT_SANDBOX_TOKEN + 1)));
	assert_non_null(auth_seat(&who, SLICE("../x"), slice_of(longest, LIMIT_SANDBOX_TOKEN)));
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
		cmocka_unit_test(empty_seats),
		cmocka_unit_test(tokens_have_bounds),
		cmocka_unit_test(sandbox_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
