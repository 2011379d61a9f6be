/* Two streams in memory: the promises of a stream over a socket, kept without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/net/stream.h"
#include "core/net/stream_internal.h"

#define MAX_PASSES 20000

/* One end, and what happened to it. */
struct end {
	struct stream *s;
	bool hold_input, in_order, inside; /* inside: a call of the owner's is under way */
	unsigned ends;
	enum cage_status how;
	unsigned drained, data_calls;
	uint64_t got;
};

struct fixture {
	struct loop *loop;
	struct end a, b;
	struct event *keep_alive; /* so that a pass always ends */
};

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg;
	fail();
}

/* Byte i of every test transfer is (i * 7) & 0xff. */
static void take_input(struct end *e)
{
	struct slice in = stream_input(e->s);
	for (size_t i = 0; i < in.len; i++)
		if ((unsigned char)in.ptr[i] != (unsigned char)((e->got + i) * 7))
			e->in_order = false;
	e->got += in.len;
	stream_consume(e->s, in.len);
}

static void on_data(struct stream *s, void *arg)
{
	struct end *e = arg;
	assert_ptr_equal(e->s, s);
	assert_false(e->inside);
	e->data_calls++;
	if (!e->hold_input)
		take_input(e);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	struct end *e = arg;
	assert_false(e->inside);
	e->drained++;
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct end *e = arg;
	assert_false(e->inside);
	assert_true(e->ends == 0 || (e->ends == 1 && e->how == CAGE_EOF && why != CAGE_EOF));
	e->ends++;
	e->how = why;
}

static const struct stream_cb cb = {on_ready, on_data, on_drained, on_end};

static void on_keep_alive(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static int setup(void **state)
{
	static struct fixture f;
	struct stream *ends[2];
	f = (struct fixture){.a.in_order = true, .b.in_order = true};
	f.loop = loop_new();
	f.keep_alive = event_new(loop_base(f.loop), -1, EV_PERSIST, on_keep_alive, NULL);
	struct timeval tick = {.tv_usec = 2000};
	event_add(f.keep_alive, &tick);
	assert_true(stream_pair(f.loop, ends, &cb, NULL));
	assert_int_equal(stream_count(f.loop), 2);
	assert_int_equal(stream_sockets(f.loop), 0);
	f.a.s = ends[0];
	f.b.s = ends[1];
	stream_set_owner(f.a.s, &cb, &f.a);
	stream_set_owner(f.b.s, &cb, &f.b);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	stream_close(&f->a.s);
	stream_close(&f->b.s);
	loop_once(f->loop);
	assert_int_equal(stream_count(f->loop), 0);
	event_free(f->keep_alive);
	loop_free(&f->loop);
	return 0;
}

#define RUN_UNTIL(f, cond)                    \
	do {                                  \
		unsigned left = MAX_PASSES;   \
		while (!(cond) && left-- > 0) \
			loop_once((f)->loop); \
		assert_true(cond);            \
	} while (0)

static void run_passes(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		loop_once(f->loop);
}

static char *pattern(size_t n)
{
	char *p = malloc(n);
	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(unsigned char)(i * 7);
	return p;
}

static void write_pattern(struct fixture *f, struct end *e, size_t n)
{
	char *p = pattern(n);
	f->a.inside = f->b.inside = true;
	stream_write(e->s, slice_of(p, n));
	f->a.inside = f->b.inside = false;
	free(p);
}

/* ---- bytes ---- */

static void moves_bytes_both_ways(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 100);
	write_pattern(f, &f->b, 3000000);
	RUN_UNTIL(f, f->b.got == 100 && f->a.got == 3000000);
	assert_true(f->a.in_order && f->b.in_order);
	assert_int_equal(f->a.ends + f->b.ends, 0);
}

static void moves_bytes_of_every_size(void **state)
{
	struct fixture *f = *state;
	static const size_t sizes[] = {1,          8191,           8192,           FIFO_BLOCK,
				       LIMIT_PIPE, LIMIT_PIPE + 1, LIMIT_OUT_HIGH, LIMIT_OUT_HIGH + 1};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		f->b.got = 0;
		write_pattern(f, &f->a, sizes[i]);
		RUN_UNTIL(f, f->b.got == sizes[i]);
	}
	assert_true(f->b.in_order);
}

static void many_small_blocks_all_arrive(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 1000; i++) {
		struct fifo one = {0};
		char c = (char)(unsigned char)(i * 7);
		assert_int_equal(fifo_put(&one, slice_of(&c, 1)), CAGE_OK);
		assert_int_equal(stream_write_block(f->a.s, &one, 1), 1);
	}
	RUN_UNTIL(f, f->b.got == 1000);
	assert_true(f->b.in_order);
}

static void small_writes_of_a_pass_leave_together(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < 10; i++) {
		char c = (char)(unsigned char)(i * 7);
		stream_write(f->a.s, slice_of(&c, 1));
	}
	RUN_UNTIL(f, f->b.got == 10);
	assert_int_equal(f->b.data_calls, 1);
	assert_true(f->b.in_order);
}

/* Another pair has as much on its way as all may have. */
static void make_memory_short(struct fixture *f, struct stream *others[2])
{
	assert_true(stream_pair(f->loop, others, &cb, NULL));
	char *p = pattern(LIMIT_WAITING + 1);
	stream_write(others[0], slice_of(p, LIMIT_WAITING + 1));
	free(p);
	assert_int_equal(stream_waiting(f->loop), LIMIT_WAITING + 1);
}

static void when_much_waits_each_has_less(void **state)
{
	struct fixture *f = *state;
	struct stream *others[2];
	make_memory_short(f, others);
	stream_set_owner(others[1], &cb, &(struct end){.s = others[1], .hold_input = true});
	f->b.hold_input = true;
	stream_hold(f->b.s, true);
	size_t written = 0;
	for (unsigned i = 0; i < 100; i++, run_passes(f, 1))
		for (; !stream_is_clogged(f->a.s); written += 1000)
			write_pattern(f, &f->a, 1000);
	assert_in_range(written, LIMIT_OUT_SHORT, 3 * LIMIT_OUT_SHORT + 2000);
	assert_true(stream_input(f->b.s).len <= LIMIT_OUT_SHORT);
	stream_close(&others[0]);
	stream_close(&others[1]);
	run_passes(f, 2);
	assert_true(stream_waiting(f->loop) <= 3 * LIMIT_OUT_SHORT);
	stream_reset(&f->a.s);
	RUN_UNTIL(f, stream_waiting(f->loop) == 0);
}

/* It goes on as before, only in smaller steps. */
static void when_much_waits_all_arrives(void **state)
{
	struct fixture *f = *state;
	struct stream *others[2];
	make_memory_short(f, others);
	stream_set_owner(others[1], &cb, &(struct end){.s = others[1], .hold_input = true});
	f->b.hold_input = true;
	stream_hold(f->b.s, true);
	write_pattern(f, &f->a, MIB(1));
	run_passes(f, 20);
	assert_true(stream_input(f->b.s).len <= LIMIT_OUT_SHORT);
	f->b.hold_input = false;
	take_input(&f->b);
	stream_hold(f->b.s, false);
	RUN_UNTIL(f, f->b.got == MIB(1));
	assert_true(f->b.in_order);
	RUN_UNTIL(f, f->a.drained == 1);
	stream_close(&others[0]);
	stream_close(&others[1]);
	run_passes(f, 2);
	assert_int_equal(stream_waiting(f->loop), 0);
}

static void a_flush_takes_as_much_as_there_is_room_for(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f, &f->a, LIMIT_PIPE);
	assert_true(stream_flush(f->a.s));
	stream_write(f->a.s, SLICE("x"));
	assert_false(stream_flush(f->a.s));
	assert_int_equal(stream_unsent(f->a.s), 1);
}

static void unread_input_stops_the_writing(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f, &f->a, 4000000);
	run_passes(f, 50);
	assert_int_equal(stream_input(f->b.s).len, LIMIT_STREAM_IN);
	assert_int_equal(f->b.s->pipe.arriving.len, LIMIT_PIPE);
	assert_int_equal(stream_unsent(f->a.s), 4000000 - LIMIT_STREAM_IN - LIMIT_PIPE);
	assert_true(stream_is_clogged(f->a.s));
	f->b.hold_input = false;
	take_input(&f->b);
	RUN_UNTIL(f, f->b.got == 4000000);
	assert_true(f->b.in_order);
	assert_false(stream_is_clogged(f->a.s));
	assert_int_equal(f->a.drained, 1);
}

/* ---- ends ---- */

static void half_close_lets_the_other_half_flow(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 200000);
	stream_end(f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EOF);
	assert_int_equal(f->b.got, 200000);
	write_pattern(f, &f->b, 500000);
	RUN_UNTIL(f, f->a.got == 500000);
	assert_int_equal(f->a.ends, 0);
	stream_end(f->b.s);
	RUN_UNTIL(f, f->a.ends == 1);
	assert_int_equal(f->a.how, CAGE_EOF);
}

static void a_close_after_all_is_sent_is_a_clean_end(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f, &f->a, LIMIT_PIPE);
	stream_close(&f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EOF);
	assert_int_equal(stream_input(f->b.s).len, LIMIT_PIPE);
}

static void a_close_in_the_pass_of_the_end_is_a_clean_end(void **state)
{
	struct fixture *f = *state;
	stream_end(f->a.s);
	stream_close(&f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EOF);
}

static void a_close_with_unsent_bytes_is_no_clean_end(void **state)
{
	struct fixture *f = *state;
	stream_write(f->a.s, SLICE("x"));
	stream_close(&f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_TRUNCATED);
	assert_int_equal(f->b.got, 0);
}

static void a_reset_is_no_clean_end(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 10);
	stream_flush(f->a.s);
	stream_reset(&f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_TRUNCATED);
	assert_int_equal(f->b.got, 10); /* what was under way is read */
}

static void how_it_broke_is_told(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 10);
	stream_flush(f->a.s);
	stream_break(&f->a.s, CAGE_EPROTO);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EPROTO);
}

static void a_reset_is_told_to_one_that_writes(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f, &f->a, 500000);
	run_passes(f, 10);
	stream_reset(&f->b.s);
	RUN_UNTIL(f, f->a.ends == 1);
	assert_int_equal(f->a.how, CAGE_TRUNCATED);
}

static void a_reset_after_the_end_is_told_as_well(void **state)
{
	struct fixture *f = *state;
	stream_end(f->a.s);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EOF);
	stream_reset(&f->a.s);
	RUN_UNTIL(f, f->b.ends == 2);
	assert_int_equal(f->b.how, CAGE_TRUNCATED);
}

static void nobody_is_told_twice_of_an_end_on_both_sides(void **state)
{
	struct fixture *f = *state;
	stream_end(f->a.s);
	stream_end(f->b.s);
	RUN_UNTIL(f, f->a.ends == 1 && f->b.ends == 1);
	stream_reset(&f->a.s);
	run_passes(f, 10);
	assert_int_equal(f->b.ends, 1);
	assert_int_equal(f->b.how, CAGE_EOF);
}

static void writing_to_one_that_has_closed_breaks(void **state)
{
	struct fixture *f = *state;
	stream_close(&f->b.s);
	RUN_UNTIL(f, f->a.ends == 1);
	assert_int_equal(f->a.how, CAGE_EOF);
	write_pattern(f, &f->a, 100);
	RUN_UNTIL(f, f->a.ends == 2);
	assert_int_equal(f->a.how, CAGE_TRUNCATED);
}

static void one_that_waits_to_write_hears_of_a_close(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	write_pattern(f, &f->a, 1000000);
	run_passes(f, 10);
	stream_close(&f->b.s);
	RUN_UNTIL(f, f->a.ends > 0 && f->a.how == CAGE_TRUNCATED);
}

static void what_a_peer_said_before_it_closed_is_read(void **state)
{
	struct fixture *f = *state;
	f->a.hold_input = true;
	stream_write(f->b.s, SLICE("413"));
	stream_finish(&f->b.s); /* answers, and drains only so much */
	write_pattern(f, &f->a, LIMIT_LINGER_BYTES + MIB(8));
	RUN_UNTIL(f, f->a.ends > 0 && f->a.how != CAGE_EOF);
	assert_true(slice_eq(stream_input(f->a.s), SLICE("413")));
}

static void finish_sends_what_is_queued_and_drains(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 1000000);
	stream_finish(&f->a.s);
	write_pattern(f, &f->b, 1000000);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_EOF);
	assert_int_equal(f->b.got, 1000000);
	stream_close(&f->b.s);
	RUN_UNTIL(f, stream_count(f->loop) == 0);
}

static void both_can_close_in_one_pass(void **state)
{
	struct fixture *f = *state;
	write_pattern(f, &f->a, 100000);
	write_pattern(f, &f->b, 100000);
	stream_reset(&f->a.s);
	stream_close(&f->b.s);
	loop_once(f->loop);
	assert_int_equal(stream_count(f->loop), 0);
	assert_int_equal(f->a.ends + f->b.ends, 0);
}

/* ---- time ---- */

static void a_deadline_ends_it(void **state)
{
	struct fixture *f = *state;
	stream_set_deadline(f->a.s, 30);
	RUN_UNTIL(f, f->a.ends == 1);
	assert_int_equal(f->a.how, CAGE_ETIMEOUT);
	assert_int_equal(f->b.ends, 0);
}

static void activity_moves_an_idle_deadline(void **state)
{
	struct fixture *f = *state;
	stream_set_idle(f->b.s, 200);
	uint64_t first = f->b.s->deadline_us;
	run_passes(f, 3);
	write_pattern(f, &f->a, 1);
	RUN_UNTIL(f, f->b.got == 1);
	assert_true(f->b.s->deadline_us > first);
	RUN_UNTIL(f, f->b.ends == 1);
	assert_int_equal(f->b.how, CAGE_ETIMEOUT);
}

static void a_peer_that_takes_nothing_can_not_gain_time(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	stream_set_stall(f->a.s, 10);
	write_pattern(f, &f->a, 4000000);
	for (unsigned left = 1000 * MAX_PASSES; f->a.ends == 0 && left > 0; left--) {
		stream_write(f->b.s, SLICE("x"));
		loop_once(f->loop);
	}
	assert_int_equal(f->a.ends, 1);
	assert_int_equal(f->a.how, CAGE_ETIMEOUT);
}

static void a_peer_that_takes_some_has_time(void **state)
{
	struct fixture *f = *state;
	f->b.hold_input = true;
	stream_set_stall(f->a.s, 200);
	write_pattern(f, &f->a, 4000000);
	run_passes(f, 3);
	uint64_t first = f->a.s->stall_us;
	assert_true(first != 0);
	run_passes(f, 3);
	take_input(&f->b);
	run_passes(f, 3);
	assert_true(f->a.s->stall_us > first);
	assert_int_equal(f->a.ends, 0);
}

/* ---- secrets ---- */

/* The byte before the input lies where consumed bytes did. */
static void secrets_are_overwritten_on_the_whole_way(void **state)
{
	struct fixture *f = *state;
	stream_write_secret(f->a.s, SLICE("hunter2"));
	assert_true(stream_flush(f->a.s));
	assert_true(f->b.s->pipe.arriving.carries_secrets);
	f->b.hold_input = true;
	RUN_UNTIL(f, stream_input(f->b.s).len == 7);
	assert_true(f->b.s->in.cleanses);
	const char *was = stream_input(f->b.s).ptr;
	stream_consume(f->b.s, 7);
	assert_memory_equal(was, "\0\0\0\0\0\0\0", 7); /* the buffer is kept for the next, not freed */
}

static void a_reader_of_secrets_has_its_writer_overwrite_too(void **state)
{
	struct fixture *f = *state;
	stream_cleanse_input(f->b.s);
	f->b.hold_input = true;
	write_pattern(f, &f->a, LIMIT_STREAM_IN + LIMIT_PIPE + 100);
	run_passes(f, 5);
	assert_int_equal(stream_unsent(f->a.s), 100);
	assert_true(f->b.s->pipe.arriving.carries_secrets);
	assert_true(f->a.s->out.carries_secrets);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(moves_bytes_both_ways),
		T(moves_bytes_of_every_size),
		T(many_small_blocks_all_arrive),
		T(small_writes_of_a_pass_leave_together),
		T(a_flush_takes_as_much_as_there_is_room_for),
		T(when_much_waits_each_has_less),
		T(when_much_waits_all_arrives),
		T(unread_input_stops_the_writing),
		T(half_close_lets_the_other_half_flow),
		T(a_close_after_all_is_sent_is_a_clean_end),
		T(a_close_in_the_pass_of_the_end_is_a_clean_end),
		T(a_close_with_unsent_bytes_is_no_clean_end),
		T(a_reset_is_no_clean_end),
		T(how_it_broke_is_told),
		T(a_reset_is_told_to_one_that_writes),
		T(a_reset_after_the_end_is_told_as_well),
		T(nobody_is_told_twice_of_an_end_on_both_sides),
		T(writing_to_one_that_has_closed_breaks),
		T(one_that_waits_to_write_hears_of_a_close),
		T(what_a_peer_said_before_it_closed_is_read),
		T(finish_sends_what_is_queued_and_drains),
		T(both_can_close_in_one_pass),
		T(a_deadline_ends_it),
		T(activity_moves_an_idle_deadline),
		T(a_peer_that_takes_nothing_can_not_gain_time),
		T(a_peer_that_takes_some_has_time),
		T(secrets_are_overwritten_on_the_whole_way),
		T(a_reader_of_secrets_has_its_writer_overwrite_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
