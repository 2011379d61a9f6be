/* What stands in a text where a value was, in each form; and that neither cuts nor what is around change anything
 * else. */
#include "tests/unit/known/fixture.h"

#include "core/base/limits.h"

static const struct known_item items[] = {
	{KNOWN_VALUE, 0, WORD("password")},
	{KNOWN_VALUE, 1, WORD("sk-\xff/\"x\\%y")},
	{KNOWN_VALUE, 63, WORD("Password1")},
};
static const struct slice placeholders[64] = {
	[0] = WORD("{{P \"1\"}}\x01"), [1] = WORD("<second>"), [63] = WORD("{{a-longer.one}}")};
#define N_ITEMS (sizeof(items) / sizeof(items[0]))

static struct known_set *new_set(void)
{
	struct known_set *set = known_set_new(items, N_ITEMS, KNOWN_REDACTED);
	assert_non_null(set);
	return set;
}

static void must_equal(const struct bytes *out, struct slice wanted, size_t cut, size_t step)
{
	if (!slice_eq(bytes_slice(out), wanted))
		fail_msg("cut at %zu, step %zu: %.*s, not %.*s", cut, step, SLICE_FMT(bytes_slice(out)),
			 SLICE_FMT(wanted));
}

/* Whole, at every cut, in pieces of a few bytes, and as a text by itself. */
static void assert_redacted(struct slice text, struct slice wanted, uint64_t found)
{
	struct known_set *set = new_set();
	struct bytes out = {0};
	struct arena arena;
	struct slice whole;
	uint64_t whole_found;
	for (size_t cut = 0; cut <= text.len; cut++) {
		assert_int_equal(redact_cut(set, placeholders, text, cut, 0, &out), found);
		must_equal(&out, wanted, cut, 0);
	}
	for (size_t step = 1; step < 8; step++) {
		assert_int_equal(redact_cut(set, placeholders, text, step, step, &out), found);
		must_equal(&out, wanted, step, step);
	}
	arena_init(&arena, MIB(1));
	assert_int_equal(redact_text(set, placeholders, text, &arena, &whole, &whole_found), CAGE_OK);
	assert_int_equal(whole_found, found);
	assert_true(slice_eq(whole, wanted));
	if (found == 0)
		assert_ptr_equal(whole.ptr, text.ptr);
	arena_free(&arena);
	bytes_free(&out);
	known_set_unref(&set);
}

#define REDACTED(text, wanted, found) assert_redacted(SLICE(text), SLICE(wanted), found)

static void other_text_stays(void **state)
{
	(void)state;
	REDACTED("", "", 0);
	REDACTED("p", "p", 0);
	REDACTED("passwor passwor%65 cGFzc3dvcm 70617373776f7 \\u0070assw",
		 "passwor passwor%65 cGFzc3dvcm 70617373776f7 \\u0070assw", 0);
}

static void plain_values_go(void **state)
{
	(void)state;
	REDACTED("password", "{{P \"1\"}}\x01", 1);
	REDACTED("a password!", "a {{P \"1\"}}\x01!", 1);
	REDACTED("passwordpassword", "{{P \"1\"}}\x01{{P \"1\"}}\x01", 1);
	REDACTED("papassword1",
		 "pa{{P \"1\"}}\x01"
		 "1",
		 1);
	REDACTED("Password1password", "{{a-longer.one}}{{P \"1\"}}\x01", 1 | (uint64_t)1 << 63);
	REDACTED("[sk-\xff/\"x\\%y]", "[<second>]", 2);
}

static void percent_stays_percent(void **state)
{
	(void)state;
	REDACTED("a=%70assword&b", "a=%7B%7BP%20%221%22%7D%7D%01&b", 1);
	REDACTED("Passwor%641", "%7B%7Ba-longer.one%7D%7D", (uint64_t)1 << 63);
	REDACTED("sk-%FF%2f%22x%5C%25y", "%3Csecond%3E", 2);
}

static void json_stays_json(void **state)
{
	(void)state;
	REDACTED("\"\\u0070assword\"", "\"{{P \\\"1\\\"}}\\u0001\"", 1);
	REDACTED("\"sk-\xff\\/\\\"x\\\\%y\"", "\"<second>\"", 2);
}

static void hex_stays_hex(void **state)
{
	(void)state;
	REDACTED("x70617373776f7264x",
		 "x7b7b5020223122"
		 "7d7d01x",
		 1);
	REDACTED("70617373776F7264", "7B7B50202231227D7D01", 1);
}

/* ---- base64 ---- */

struct shape {
	enum alphabet alphabet;
	bool pads;
};

static const struct shape shapes[] = {
	{ALPHABET_STD, true}, {ALPHABET_URL, false}, {ALPHABET_URL, true}, {ALPHABET_STD, false}};

/* Both texts encoded, in quotes. The first byte says the alphabet. */
static void assert_run(struct slice plain, struct slice wanted, uint64_t found)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct bytes in = {0}, out = {0};
		bool was_whole = plain.len % 3 == 0;
		bool gets_padding = was_whole ? shapes[i].alphabet == ALPHABET_STD : shapes[i].pads;
		bytes_add_char(&in, '"');
		bytes_add_char(&out, '"');
		add_base64(&in, plain, shapes[i].alphabet, shapes[i].pads);
		add_base64(&out, wanted, shapes[i].alphabet, gets_padding);
		bytes_add_char(&in, '"');
		bytes_add_char(&out, '"');
		assert_redacted(bytes_slice(&in), bytes_slice(&out), found);
		/* The same at the very start and end. */
		assert_redacted(slice_of(in.ptr + 1, in.len - 2), slice_of(out.ptr + 1, out.len - 2), found);
		bytes_free(&in);
		bytes_free(&out);
	}
}

/* Each piece of a run is text or, where it is a number, the value of that item. */
static void assert_run_of(const char *const *pieces, size_t n)
{
	for (size_t before = 0; before < 3; before++) {
		for (size_t behind = 0; behind < 3; behind++) {
			struct bytes plain = {0}, wanted = {0};
			uint64_t found = 0;
			/* 0xfb, 0xff, 0xbf have both digits in which the alphabets differ. */
			bytes_add(&plain, slice_of("\xfb\xff\xbf"
						   "ab",
						   3 + before));
			bytes_add(&wanted, slice_of("\xfb\xff\xbf"
						    "ab",
						    3 + before));
			for (size_t i = 0; i < n; i++) {
				bool is_item = ascii_is_digit((unsigned char)pieces[i][0]);
				const struct known_item *item = is_item ? &items[pieces[i][0] - '0'] : NULL;
				bytes_add(&plain, item ? item->bytes : slice_str(pieces[i]));
				bytes_add(&wanted, item ? placeholders[item->secret] : slice_str(pieces[i]));
				found |= item ? (uint64_t)1 << item->secret : 0;
			}
			bytes_add(&plain, slice_of("\xff\xfe", behind));
			bytes_add(&wanted, slice_of("\xff\xfe", behind));
			assert_run(bytes_slice(&plain), bytes_slice(&wanted), found);
			bytes_free(&plain);
			bytes_free(&wanted);
		}
	}
}

#define RUN(...)                                                              \
	do {                                                                  \
		const char *const pieces_[] = {__VA_ARGS__};                  \
		assert_run_of(pieces_, sizeof(pieces_) / sizeof(pieces_[0])); \
	} while (0)

static void runs_are_written_afresh(void **state)
{
	(void)state;
	RUN("0");
	RUN("1");
	RUN("2");
	RUN("user:", "0");
	RUN("0", "\xff\xfe\xfd\xfc and more behind it \xfb\xfa");
	RUN("user:", "1", ":\xfb\xff\xbf:");
}

/* Longer than what is collected for the sink. */
static void long_runs_are_written_afresh(void **state)
{
	(void)state;
	struct known_set *set = new_set();
	struct bytes plain = {0}, wanted = {0}, text = {0}, out = {0}, encoded = {0};
	bytes_add(&plain, SLICE("password"));
	bytes_add(&wanted, placeholders[0]);
	for (unsigned i = 0; i < 5000; i++) {
		bytes_add_char(&plain, (char)(i * i >> 4));
		bytes_add_char(&wanted, (char)(i * i >> 4));
	}
	add_base64(&text, bytes_slice(&plain), ALPHABET_STD, true);
	add_base64(&encoded, bytes_slice(&wanted), ALPHABET_STD, true);
	for (size_t step = 1; step < 4000; step += 333) {
		assert_int_equal(redact_cut(set, placeholders, bytes_slice(&text), step, step, &out), 1);
		must_equal(&out, bytes_slice(&encoded), step, step);
	}
	bytes_free(&plain);
	bytes_free(&wanted);
	bytes_free(&text);
	bytes_free(&out);
	bytes_free(&encoded);
	known_set_unref(&set);
}

static void runs_may_have_several_values(void **state)
{
	(void)state;
	RUN("0", "0");
	RUN("0", "1", "2", "0");
	RUN("0", "x", "2", "yz", "1", "\xff\xfe\xfd", "0");
	RUN("2", "\xff", "2");
}

/* A run that is none: padding that is too short or too long, and a digit too many. */
static void bad_runs_stay_near(void **state)
{
	(void)state;
	REDACTED("AABwYXNzd29yZB=.", "AAB7e1AgIjEifX0B.", 1);
	REDACTED("cGFzc3dvcmRB/.", "e3tQICIxIn19AUH.", 1);
	REDACTED("cGFzc3dvcmQ==", "e3tQICIxIn19AQ===", 1);
	REDACTED("cGFzc3dvcmQ", "e3tQICIxIn19AQ", 1);
}

/* Behind another value, or at another place of its group, a new run begins. */
static void a_run_ends_at_another_value(void **state)
{
	(void)state;
	REDACTED("cGFzc3dvcmQpassword/x", "e3tQICIxIn19AQ{{P \"1\"}}\x01/x", 1);
	/* In the last digit of one, two bits behind its end. */
	REDACTED("eHhwYXNzd29yZBwYXNzd29yZA", "eHh7e1AgIjEifX0BB7e1AgIjEifX0B", 1);
	REDACTED("eHhwYXNzd29yZPassword1", "eHh7e1AgIjEifX0B{{a-longer.one}}", 1 | (uint64_t)1 << 63);
	REDACTED("cGFzc3dvcmRB/cGFzc3dvcmQ=", "e3tQICIxIn19AUHe3tQICIxIn19AQ==", 1);
}

/* What can be no value is not kept back. */
static void only_beginnings_are_kept(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t kept;
	} cases[] = {{"data: hello\n\n", 0}, {"say pass", 4}, {"say %70as", 5}, {"say passw.", 0}, {"\\u0070as", 8},
		     {"\"cGFzc3", 6},        {" 706173", 6},  {".!\\", 1},      {"p!", 0}};
	struct known_set *set = new_set();
	struct bytes out = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct redactor *r = redactor_new(set, placeholders, collect, &out);
		assert_non_null(r);
		out.len = 0;
		assert_int_equal(redactor_feed(r, slice_str(cases[i].text)), CAGE_OK);
		assert_int_equal(redactor_kept(r), cases[i].kept);
		assert_int_equal(out.len, strlen(cases[i].text) - cases[i].kept);
		redactor_free(&r);
	}
	bytes_free(&out);
	known_set_unref(&set);
}

/* A value is in one text, or in none. */
static void one_text_after_the_other(void **state)
{
	(void)state;
	struct known_set *set = new_set();
	struct bytes out = {0};
	struct redactor *r = redactor_new(set, placeholders, collect, &out);
	assert_non_null(r);
	static const char *const texts[] = {"a passwor", "d, ", "cGFzc3dvcmQ", "=password"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		out.len = 0;
		assert_int_equal(redactor_feed(r, slice_str(texts[i])), CAGE_OK);
		assert_int_equal(redactor_end(r), CAGE_OK);
		assert_int_equal(redactor_kept(r), 0);
		if (i < 2)
			assert_true(slice_eq(bytes_slice(&out), slice_str(texts[i])));
	}
	assert_true(slice_starts(bytes_slice(&out), SLICE("=")));
	assert_false(slice_ends(bytes_slice(&out), SLICE("password")));
	redactor_free(&r);
	bytes_free(&out);
	known_set_unref(&set);
}

/* What is not kept goes on where it is, in one slice. */
static void remember(void *arg, struct slice bytes)
{
	struct slice *last = arg;
	assert_null(last->ptr);
	*last = bytes;
}

static void plain_text_is_not_copied(void **state)
{
	(void)state;
	struct known_set *set = new_set();
	struct slice text = SLICE("nothing to see in here, p/ssword, and nothing at its end.\n"), last = SLICE_NONE;
	struct redactor *r = redactor_new(set, placeholders, remember, &last);
	assert_non_null(r);
	assert_int_equal(redactor_feed(r, text), CAGE_OK);
	assert_ptr_equal(last.ptr, text.ptr);
	assert_int_equal(last.len, text.len);
	assert_int_equal(redactor_end(r), CAGE_OK);
	redactor_free(&r);
	known_set_unref(&set);
}

static void a_full_arena_is_an_error(void **state)
{
	(void)state;
	struct known_set *set = new_set();
	struct arena arena;
	struct slice out;
	uint64_t found;
	arena_init(&arena, 4);
	assert_int_equal(redact_text(set, placeholders, SLICE("a password"), &arena, &out, &found), CAGE_ENOMEM);
	assert_int_equal(redact_text(set, placeholders, SLICE("no passwor."), &arena, &out, &found), CAGE_OK);
	arena_free(&arena);
	known_set_unref(&set);
}

/* A value that is no secret of the policy has no bit, and goes all the same. */
static void values_without_a_bit_go_too(void **state)
{
	(void)state;
	const struct known_item item = {KNOWN_VALUE, LIMIT_SECRETS, SLICE("password")};
	static const struct slice with[LIMIT_SECRETS + 1] = {[LIMIT_SECRETS] = WORD("<token>")};
	struct known_set *set = known_set_new(&item, 1, KNOWN_REDACTED);
	struct bytes out = {0};
	struct arena arena;
	struct slice whole;
	uint64_t found;
	assert_non_null(set);
	arena_init(&arena, MIB(1));
	assert_int_equal(redact_text(set, with, SLICE("a password"), &arena, &whole, &found), CAGE_OK);
	assert_true(slice_eq(whole, SLICE("a <token>")));
	assert_int_equal(found, 0);
	assert_int_equal(redact_cut(set, with, SLICE("a password"), 4, 0, &out), 0);
	must_equal(&out, SLICE("a <token>"), 4, 0);
	arena_free(&arena);
	bytes_free(&out);
	known_set_unref(&set);
}

/* The longest value, in the longest form, byte by byte. */
static void long_values_are_found(void **state)
{
	(void)state;
	static char value[LIMIT_SECRET_VALUE];
	struct bytes text = {0}, out = {0};
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)('!' + (i * i + i / 7) % 90);
	const struct known_item item = {KNOWN_VALUE, 0, slice_of(value, sizeof(value))};
	const struct slice placeholder = SLICE("<it>");
	struct known_set *set = known_set_new(&item, 1, KNOWN_REDACTED);
	assert_non_null(set);
	bytes_add(&text, SLICE("- "));
	for (size_t i = 0; i < sizeof(value); i++) {
		char escape[8];
		snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)value[i]);
		bytes_add(&text, slice_str(escape));
	}
	bytes_add(&text, SLICE(" -"));
	assert_int_equal(redact_cut(set, &placeholder, bytes_slice(&text), 1, 0, &out), 1);
	assert_true(slice_eq(bytes_slice(&out), SLICE("- <it> -")));
	assert_int_equal(redact_cut(set, &placeholder, bytes_slice(&text), 5, 1000, &out), 1);
	assert_true(slice_eq(bytes_slice(&out), SLICE("- <it> -")));
	/* All but the last byte. */
	assert_int_equal(redact_cut(set, &placeholder, slice_head(bytes_slice(&text), text.len - 3), 9, 3000, &out), 0);
	assert_true(slice_eq(bytes_slice(&out), slice_head(bytes_slice(&text), text.len - 3)));
	bytes_free(&text);
	bytes_free(&out);
	known_set_unref(&set);
}

/* A value that repeats itself may begin anew in what is kept of a start that fails. */
static void values_that_repeat_are_found(void **state)
{
	(void)state;
	struct bytes value = {0}, text = {0}, wanted = {0}, out = {0};
	const struct slice placeholder = SLICE("<it>");
	for (size_t i = 0; i < 100; i++) {
		bytes_add(&text, SLICE("ab"));
		bytes_add(i < 60 ? &value : &wanted, SLICE("ab"));
	}
	bytes_add_char(&value, '!');
	bytes_add_char(&text, '!');
	bytes_add(&wanted, placeholder);
	const struct known_item item = {KNOWN_VALUE, 0, bytes_slice(&value)};
	struct known_set *set = known_set_new(&item, 1, KNOWN_REDACTED);
	assert_non_null(set);
	for (size_t cut = 0; cut <= text.len; cut++) {
		for (size_t step = 0; step < 90; step += 44) {
			assert_int_equal(redact_cut(set, &placeholder, bytes_slice(&text), cut, step, &out), 1);
			must_equal(&out, bytes_slice(&wanted), cut, step);
		}
	}
	bytes_free(&value);
	bytes_free(&text);
	bytes_free(&wanted);
	bytes_free(&out);
	known_set_unref(&set);
}

/* As assert_redacted(), of a text whose length must not change. */
static void assert_overwritten(struct slice text, struct slice wanted)
{
	struct known_set *set = new_set();
	struct bytes out = {0};
	assert_int_equal(text.len, wanted.len);
	for (size_t step = 1; step <= text.len; step++) {
		struct redactor *r = redactor_new(set, placeholders, collect, &out);
		assert_non_null(r);
		redactor_keep_length(r);
		out.len = 0;
		for (size_t at = 0; at < text.len; at += step)
			assert_int_equal(redactor_feed(r, slice_head(slice_from(text, at), step)), CAGE_OK);
		assert_int_equal(redactor_end(r), CAGE_OK);
		must_equal(&out, wanted, 0, step);
		assert_true(redactor_found(r) != 0);
		redactor_free(&r);
	}
	bytes_free(&out);
	known_set_unref(&set);
}

#define OVERWRITTEN(text, wanted) assert_overwritten(SLICE(text), SLICE(wanted))

static void lengths_are_kept_where_they_count(void **state)
{
	(void)state;
	OVERWRITTEN("\x0a\x08password!", "\x0a\x08********!");
	OVERWRITTEN("passwordpassword", "****************");
	OVERWRITTEN("a=%70assword&b", "a=**********&b");
	OVERWRITTEN("\"\\u0070assword\"", "\"*************\"");
	OVERWRITTEN("x70617373776f7264x", "x0000000000000000x");
	OVERWRITTEN("a cGFzc3dvcmQ= b", "a 00000000000= b");
	OVERWRITTEN("\"cGFzc3dvcmRwYXNzd29yZA\"", "\"0000000000000000000000\""); /* twice, with a digit of both */
	OVERWRITTEN("\"cGFzc3dvcmRwYXNzd29y\" password", "\"00000000000wYXNzd29y\" ********");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_text_stays),
		cmocka_unit_test(plain_values_go),
		cmocka_unit_test(percent_stays_percent),
		cmocka_unit_test(json_stays_json),
		cmocka_unit_test(hex_stays_hex),
		cmocka_unit_test(runs_are_written_afresh),
		cmocka_unit_test(long_runs_are_written_afresh),
		cmocka_unit_test(runs_may_have_several_values),
		cmocka_unit_test(bad_runs_stay_near),
		cmocka_unit_test(a_run_ends_at_another_value),
		cmocka_unit_test(only_beginnings_are_kept),
		cmocka_unit_test(one_text_after_the_other),
		cmocka_unit_test(plain_text_is_not_copied),
		cmocka_unit_test(a_full_arena_is_an_error),
		cmocka_unit_test(values_without_a_bit_go_too),
		cmocka_unit_test(long_values_are_found),
		cmocka_unit_test(values_that_repeat_are_found),
		cmocka_unit_test(lengths_are_kept_where_they_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
