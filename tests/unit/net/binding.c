/* Frames of bindings, and the table of them. */
#include "core/net/binding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/net/binding_table.h"

#define S UINT64_C(1000000)

static struct addr address(const char *text)
{
	struct addr a;
	assert_true(addr_parse(slice_str(text), &a));
	return a;
}

static struct binding binding(enum binding_kind kind, const char *name, uint32_t life_s, const char *addr)
{
	struct binding b = {.kind = kind, .name = slice_str(name), .life_s = life_s, .n = 1};
	b.addrs[0] = address(addr);
	return b;
}

/* ---- frames ---- */

static void what_is_written_is_read(void **state)
{
	(void)state;
	static const enum binding_kind kinds[] = {BINDING_V4, BINDING_V6, BINDING_GIVEN};
	char longest[LIMIT_HOST + 1] = "";
	memset(longest, 'a', LIMIT_HOST);
	for (size_t k = 0; k < 3; k++) {
		unsigned char frame[BINDING_FRAME];
		struct binding in = binding(kinds[k], longest, LIMIT_BINDING_LIFE_S,
					    kinds[k] == BINDING_V6 ? "2001:db8::1" : "192.0.2.1"),
			       out;
		while (kinds[k] != BINDING_GIVEN && in.n < LIMIT_ANSWERS) {
			in.addrs[in.n] = in.addrs[0];
			in.addrs[in.n].bytes[3] = (unsigned char)in.n;
			in.n++;
		}
		size_t len = binding_write(&in, frame);
		assert_true(len > 0 && len <= BINDING_FRAME);
		struct slice input = slice_of(frame, len);
		for (size_t cut = 0; cut < len; cut++) {
			struct slice part = slice_of(frame, cut);
			assert_int_equal(binding_read(&part, &out), CAGE_AGAIN);
		}
		assert_int_equal(binding_read(&input, &out), CAGE_OK);
		assert_int_equal(input.len, 0);
		assert_int_equal(out.kind, in.kind);
		assert_true(slice_eq(out.name, in.name));
		assert_int_equal(out.life_s, in.life_s);
		assert_int_equal(out.n, in.n);
		for (size_t i = 0; i < in.n; i++)
			assert_true(addr_eq(&out.addrs[i], &in.addrs[i]));
	}
}

static void what_can_not_be_read_is_not_written(void **state)
{
	(void)state;
	unsigned char frame[BINDING_FRAME];
	struct binding b = binding(BINDING_V4, "a.test", 60, "192.0.2.1");
	assert_true(binding_write(&b, frame) > 0);
	b.n = 0;
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_V4, "", 60, "192.0.2.1");
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_V4, "A.test", 60, "192.0.2.1");
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_V4, "a.test", 0, "192.0.2.1");
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_V4, "a.test", LIMIT_BINDING_LIFE_S + 1, "192.0.2.1");
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_V6, "a.test", 60, "192.0.2.1");
	assert_int_equal(binding_write(&b, frame), 0);
	b = binding(BINDING_GIVEN, "a.test", 60, "2001:db8::1");
	assert_int_equal(binding_write(&b, frame), 0);
}

static void broken_frames(void **state)
{
	(void)state;
	unsigned char good[BINDING_FRAME];
	struct binding b = binding(BINDING_V4, "a.test", 60, "192.0.2.1"), out;
	size_t len = binding_write(&b, good);
	static const struct {
		size_t at;
		unsigned char byte;
	} changes[] = {
		{0, 0xff}, {1, 0}, {1, 6}, {2, 0}, {2, 5},   {2, 6},   {3, 0},  {3, 2},    {3, 17},    {3, 255},
		{4, 0xff}, {8, 0}, {8, 5}, {8, 7}, {8, 255}, {9, 'A'}, {10, 0}, {10, ' '}, {14, 0x80},
	};
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		unsigned char bad[BINDING_FRAME];
		memcpy(bad, good, len);
		bad[changes[i].at] = changes[i].byte;
		struct slice input = slice_of(bad, len);
		if (binding_read(&input, &out) != CAGE_EPROTO)
			fail_msg("byte %zu as %u", changes[i].at, changes[i].byte);
		assert_int_equal(input.len, len);
	}
}

/* ---- the table ---- */

static void put(struct binding_table *t, enum binding_kind kind, const char *name, uint32_t life_s, const char *addr,
		uint64_t now)
{
	struct binding b = binding(kind, name, life_s, addr);
	assert_int_equal(binding_table_put(t, &b, now), CAGE_OK);
}

static void both_families_until_their_time_is_over(void **state)
{
	(void)state;
	struct binding_table *t = binding_table_new(8);
	struct addr out[LIMIT_ANSWERS];
	put(t, BINDING_V4, "a.test", 10, "192.0.2.1", 0);
	put(t, BINDING_V6, "a.test", 20, "2001:db8::1", 0);
	assert_int_equal(binding_table_addresses(t, SLICE("a.test"), 0, out), 2);
	assert_int_equal(out[0].family, ADDR_V6);
	assert_int_equal(out[1].family, ADDR_V4);
	assert_int_equal(binding_table_addresses(t, SLICE("a.test"), 10 * S, out), 1);
	assert_int_equal(out[0].family, ADDR_V6);
	assert_int_equal(binding_table_addresses(t, SLICE("a.test"), 20 * S, out), 0);
	assert_int_equal(binding_table_addresses(t, SLICE("b.test"), 0, out), 0);
	put(t, BINDING_V4, "a.test", 10, "192.0.2.2", 30 * S);
	assert_int_equal(binding_table_addresses(t, SLICE("a.test"), 30 * S, out), 1);
	assert_int_equal(out[0].bytes[3], 2);
	binding_table_free(&t);
	assert_null(t);
}

static void what_is_old_makes_room(void **state)
{
	(void)state;
	struct binding_table *t = binding_table_new(4);
	struct addr out[LIMIT_ANSWERS];
	for (int i = 0; i < 100; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%d.test", i);
		put(t, BINDING_V4, name, 10, "192.0.2.1", 0);
	}
	assert_int_equal(binding_table_addresses(t, SLICE("n95.test"), 0, out), 0);
	assert_int_equal(binding_table_addresses(t, SLICE("n96.test"), 0, out), 1);
	assert_int_equal(binding_table_addresses(t, SLICE("n99.test"), 0, out), 1);
	binding_table_free(&t);
}

static void given_addresses(void **state)
{
	(void)state;
	struct binding_table *t = binding_table_new(2);
	struct addr one = address("100.64.0.1"), two = address("100.64.0.2"), three = address("100.64.0.3"), out;
	struct addr v6 = address("2001:db8::1");
	struct addr answered[LIMIT_ANSWERS];
	uint32_t life_s;
	put(t, BINDING_GIVEN, "a.test", 10, "100.64.0.1", 0);
	put(t, BINDING_GIVEN, "b.test", 10, "100.64.0.2", 1 * S);
	assert_true(slice_eq(binding_table_name(t, &one, 0), SLICE("a.test")));
	assert_true(slice_eq(binding_table_name(t, &two, 0), SLICE("b.test")));
	assert_int_equal(binding_table_name(t, &three, 0).len, 0);
	assert_int_equal(binding_table_name(t, &v6, 0).len, 0);
	assert_true(binding_table_given(t, SLICE("a.test"), 4 * S, &out, &life_s));
	assert_int_equal(life_s, 6);
	assert_true(addr_eq(&out, &one));
	assert_int_equal(binding_table_addresses(t, SLICE("a.test"), 0, answered), 0);

	/* no room while the oldest lives, and room again when its time is over */
	struct binding c = binding(BINDING_GIVEN, "c.test", 10, "100.64.0.3");
	assert_int_equal(binding_table_put(t, &c, 5 * S), CAGE_ELIMIT);
	assert_int_equal(binding_table_put(t, &c, 10 * S), CAGE_OK);
	assert_int_equal(binding_table_name(t, &one, 10 * S).len, 0);
	assert_true(slice_eq(binding_table_name(t, &three, 10 * S), SLICE("c.test")));

	/* a name that gets another address, and an address that gets another name */
	put(t, BINDING_GIVEN, "c.test", 10, "100.64.0.1", 10 * S);
	assert_int_equal(binding_table_name(t, &three, 10 * S).len, 0);
	put(t, BINDING_GIVEN, "d.test", 10, "100.64.0.1", 10 * S);
	assert_true(slice_eq(binding_table_name(t, &one, 10 * S), SLICE("d.test")));
	assert_false(binding_table_given(t, SLICE("c.test"), 10 * S, &out, &life_s));
	binding_table_free(&t);
}

struct seen {
	char text[256];
};

static void see(void *arg, const struct binding *b)
{
	struct seen *s = arg;
	size_t len = strlen(s->text);
	snprintf(s->text + len, sizeof(s->text) - len, "%.*s %u %zu, ", SLICE_FMT(b->name), b->life_s, b->n);
}

static void all_that_live_in_their_order(void **state)
{
	(void)state;
	struct binding_table *t = binding_table_new(8);
	struct seen seen = {""};
	put(t, BINDING_V4, "a.test", 10, "192.0.2.1", 0);
	put(t, BINDING_V4, "over.test", 1, "192.0.2.1", 0);
	put(t, BINDING_V6, "b.test", 10, "2001:db8::1", 0);
	put(t, BINDING_V4, "a.test", 10, "192.0.2.1", 1 * S);
	binding_table_each(t, 2 * S, see, &seen);
	assert_string_equal(seen.text, "b.test 8 1, a.test 9 1, ");
	binding_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_can_not_be_read_is_not_written),
		cmocka_unit_test(broken_frames),
		cmocka_unit_test(both_families_until_their_time_is_over),
		cmocka_unit_test(what_is_old_makes_room),
		cmocka_unit_test(given_addresses),
		cmocka_unit_test(all_that_live_in_their_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
