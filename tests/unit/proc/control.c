/* Control messages between processes, with and without a descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/proc/control.h"

static void carries_a_message_and_a_descriptor(void **state)
{
	(void)state;
	int ends[2], got = -1, pipe_ends[2];
	struct control in, out = {.type = CONTROL_SEAT, .index = 3, .gen = 7, .seat = {.size = 4096}};
	assert_true(control_pair(ends));
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(control_receive(ends[1], &in, &got), CAGE_AGAIN);
	assert_int_equal(control_send(ends[0], &out, pipe_ends[1]), CAGE_OK);
	assert_int_equal(control_receive(ends[1], &in, &got), CAGE_OK);
	assert_int_equal(in.type, CONTROL_SEAT);
	assert_int_equal(in.gen, 7);
	assert_int_equal(in.seat.size, 4096);
	assert_true(got >= 0 && (fcntl(got, F_GETFD) & FD_CLOEXEC));
	assert_int_equal(write(got, "x", 1), 1);
	close(got);
	assert_int_equal(control_send(ends[0], &out, -1), CAGE_OK);
	assert_int_equal(control_receive(ends[1], &in, &got), CAGE_OK);
	assert_int_equal(got, -1);
	close(ends[0]);
	assert_int_equal(control_receive(ends[1], &in, &got), CAGE_EOF);
	close(ends[1]);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static void a_message_of_another_size_is_refused(void **state)
{
	(void)state;
	int ends[2], got;
	struct control in;
	assert_true(control_pair(ends));
	assert_int_equal(send(ends[0], "short", 5, 0), 5);
	assert_int_equal(control_receive(ends[1], &in, &got), CAGE_EPROTO);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_a_message_and_a_descriptor),
		cmocka_unit_test(a_message_of_another_size_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
