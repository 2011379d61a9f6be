/* Secrets in bodies: each way of writing, cut at every byte, and nothing kept back that need not be. */
#include "tests/unit/proxy/inject.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(i) ((uint64_t)1 << (i))
#define ROOM 65536

static const struct inject_plan plan = {.secrets = secrets, .n_secrets = N_SECRETS};

struct output {
	char bytes[ROOM];
	size_t len;
};

static void sink(void *arg, struct slice bytes)
{
	struct output *o = arg;
	assert_true(bytes.len > 0 && bytes.len <= ROOM - o->len);
	memcpy(o->bytes + o->len, bytes.ptr, bytes.len);
	o->len += bytes.len;
}

static void feed(struct body_injector *b, struct slice piece)
{
	assert_int_equal(body_injector_feed(b, piece), CAGE_OK);
}

struct body_case {
	enum inject_escape how;
	const char *in, *out;
	uint64_t used;
};

#define ONE_RAW "sk-1/\"\\&= %"
#define ONE_JSON "sk-1/\\\"\\\\&= %"
#define ONE_FORM "sk-1%2F%22%5C%26%3D%20%25"

static const struct body_case cases[] = {
	{INJECT_RAW, "", "", 0},
	{INJECT_RAW, "plain {{KEY} text {{", "plain {{KEY} text {{", 0},
	{INJECT_RAW, "{{KEY_ONE}}", ONE_RAW, BIT(ONE)},
	{INJECT_RAW, "a{{KEY_ONE}}{{KEY+TWO}}b{{KEY_ONE}}", "a" ONE_RAW "token-twob" ONE_RAW, BIT(ONE) | BIT(TWO)},
	{INJECT_RAW, "{{{KEY_ONE}}/b|{{KEY_ONE}}/", "{longer-value|" ONE_RAW "/", BIT(ONE) | BIT(LONGER)},
	{INJECT_RAW, "{{KEY {{KEY_ONE{{KEY_ONE}}", "{{KEY {{KEY_ONE" ONE_RAW, BIT(ONE)},
	{INJECT_RAW, "%7B%7BKEY_ONE}} \\u007b{KEY_ONE}}", "%7B%7BKEY_ONE}} \\u007b{KEY_ONE}}", 0},
	{INJECT_RAW, "{{A/TOKEN}} {{AWS_KEY}}", "{{A/TOKEN}} {{AWS_KEY}}", 0},
	/* whoever reads it may undo escapes, whatever it is said to be */
	{INJECT_RAW, "\\{{KEY+TWO}}%{{KEY+TWO}}", "\\{{KEY+TWO}}%{{KEY+TWO}}", 0},
	{INJECT_RAW, "\\u00{{KEY+TWO}}%4{{KEY+TWO}}", "\\u00{{KEY+TWO}}%4{{KEY+TWO}}", 0},
	{INJECT_RAW, "100% {{KEY+TWO}}\\\\{{KEY+TWO}}", "100% token-two\\\\token-two", BIT(TWO)},

	{INJECT_JSON, "{\"k\":\"{{KEY_ONE}}\"}", "{\"k\":\"" ONE_JSON "\"}", BIT(ONE)},
	{INJECT_JSON, "\"\\u007b\\u007B\\u004bEY_ONE}\\u007D\"", "\"" ONE_JSON "\"", BIT(ONE)},
	{INJECT_JSON, "\"{{KEY_ONE}}\\/b \\\\{{KEY+TWO}}\\n\"", "\"longer-value \\\\token-two\\n\"",
	 BIT(LONGER) | BIT(TWO)},
	{INJECT_JSON, "\"%7B%7BKEY_ONE}}\"", "\"%7B%7BKEY_ONE}}\"", 0},
	/* behind an escape that is not whole */
	{INJECT_JSON, "\"\\{{KEY+TWO}}\"", "\"\\{{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\\\\\{{KEY+TWO}}\"", "\"\\\\\\{{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\u004{{KEY+TWO}}\"", "\"\\u004{{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\u{{KEY+TWO}}\"", "\"\\u{{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\x4{{KEY+TWO}}\"", "\"\\x4{{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\u00\\u007b{KEY+TWO}}\"", "\"\\u00\\u007b{KEY+TWO}}\"", 0},
	{INJECT_JSON, "\"\\u0041{{KEY+TWO}}\"", "\"\\u0041token-two\"", BIT(TWO)},

	{INJECT_FORM, "a=b&key={{KEY_ONE}}&c=d", "a=b&key=" ONE_FORM "&c=d", BIT(ONE)},
	{INJECT_FORM, "k=%7B%7bKEY%5FONE%7D%7D%2Fb", "k=longer-value", BIT(LONGER)},
	{INJECT_FORM, "k=%7B{KEY+TWO}}&k={{KEY%2BTWO}}", "k=token-two&k=token-two", BIT(TWO)},
	{INJECT_FORM, "k={{KEY_ONE}}", "k=" ONE_FORM, BIT(ONE)},
	{INJECT_FORM, "k=%{{KEY+TWO}}%4{{KEY+TWO}}%41{{KEY+TWO}}", "k=%{{KEY+TWO}}%4{{KEY+TWO}}%41token-two", BIT(TWO)},
	{INJECT_FORM, "k=%7B%7BKEY_ON%45%7D%7", "k=%7B%7BKEY_ON%45%7D%7", 0},
};

static struct body_injector *make(enum inject_escape how, struct output *out)
{
	struct body_injector *b = body_injector_new(&plan, values, how, sink, out);
	assert_non_null(b);
	out->len = 0;
	return b;
}

static void finish(const struct body_case *c, struct body_injector *b, const struct output *out)
{
	assert_int_equal(body_injector_end(b), CAGE_OK);
	assert_int_equal(out->len, strlen(c->out));
	assert_memory_equal(out->bytes, c->out, out->len);
	assert_int_equal(body_injector_used(b), c->used);
	body_injector_free(&b);
	assert_null(b);
}

static void placeholders_are_replaced_wherever_the_body_is_cut(void **state)
{
	(void)state;
	static struct output out;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct slice in = slice_str(cases[i].in);
		for (size_t first = 0; first <= in.len; first++) {
			for (size_t second = first; second <= in.len; second++) {
				struct body_injector *b = make(cases[i].how, &out);
				feed(b, slice_head(in, first));
				feed(b, slice_from(slice_head(in, second), first));
				feed(b, slice_from(in, second));
				finish(&cases[i], b, &out);
			}
		}
	}
}

/* Each piece is gone, with what it lies in, before the next comes. */
static void placeholders_are_replaced_in_single_bytes(void **state)
{
	(void)state;
	static struct output out;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct body_injector *b = make(cases[i].how, &out);
		for (const char *p = cases[i].in; *p; p++) {
			char byte = *p;
			feed(b, slice_of(&byte, 1));
		}
		finish(&cases[i], b, &out);
	}
}

struct kept_case {
	enum inject_escape how;
	const char *in, *sent;
};

static void only_a_beginning_is_kept_back(void **state)
{
	static const struct kept_case kept_cases[] = {
		{INJECT_RAW, "abc", "abc"},
		{INJECT_RAW, "abc{", "abc"},
		{INJECT_RAW, "abc{{{KEY_ONE", "abc{"},
		{INJECT_RAW, "abc{{KEY_ONE}}", "abc"}, /* may become the longer one */
		{INJECT_RAW, "abc{{KEY_ONE}}x", "abc" ONE_RAW "x"},
		{INJECT_RAW, "abc{{KEY+TWO}}", "abctoken-two"},
		{INJECT_RAW, "abc{{KEX", "abc{{KEX"},
		{INJECT_RAW, "%7B", "%7B"},
		{INJECT_JSON, "abc\\", "abc"},
		{INJECT_JSON, "abc\\u007", "abc"},
		{INJECT_JSON, "abc\\u008", "abc\\u008"},
		{INJECT_JSON, "abc\\n", "abc\\n"},
		{INJECT_JSON, "abc\\{{KEY", "abc\\{{KEY"},
		{INJECT_FORM, "abc%7", "abc"},
		{INJECT_FORM, "abc%6", "abc%6"},
		{INJECT_FORM, "abc%41", "abc%41"},
		{INJECT_FORM, "abc%7B%7BKEY_ON%4", "abc"},
	};
	(void)state;
	static struct output out;
	for (size_t i = 0; i < COUNT(kept_cases); i++) {
		const struct kept_case *c = &kept_cases[i];
		struct body_injector *b = make(c->how, &out);
		feed(b, slice_str(c->in));
		assert_int_equal(out.len, strlen(c->sent));
		assert_memory_equal(out.bytes, c->sent, out.len);
		assert_int_equal(body_injector_end(b), CAGE_OK);
		body_injector_free(&b);
	}
}

/* The longest placeholder, escaped as far as can be, at the end of large pieces. */
static void the_longest_placeholder_is_found(void **state)
{
	(void)state;
	static struct output out;
	static char text[4 * LIMIT_PLACEHOLDER * 6];
	char word[LIMIT_PLACEHOLDER];
	memset(word, 'K', sizeof(word));
	word[sizeof(word) - 1] = 'L';
	struct inject_secret one = {&policy_secrets[TWO], slice_of(word, sizeof(word))};
	struct inject_plan own = {.secrets = &one, .n_secrets = 1};
	size_t n = 0;
	for (; n < 6 * 40; n += 6)
		memcpy(text + n, "\\u004b", 6); /* the same beginning, again and again */
	for (size_t i = 0; i + 1 < sizeof(word); i++, n += 6)
		memcpy(text + n, "\\u004B", 6);
	memcpy(text + n, "\\u004C", 6);
	n += 6;
	memcpy(text + n, "end", 3);
	n += 3;
	for (size_t cut = 0; cut <= n; cut++) {
		struct body_injector *b = body_injector_new(&own, &values[TWO], INJECT_JSON, sink, &out);
		assert_non_null(b);
		out.len = 0;
		feed(b, slice_of(text, cut));
		feed(b, slice_of(text + cut, n - cut));
		assert_int_equal(body_injector_end(b), CAGE_OK);
		assert_int_equal(out.len, 6 * 40 + values[TWO].len + 3);
		assert_memory_equal(out.bytes + 6 * 40, "token-twoend", 12);
		body_injector_free(&b);
	}
}

static void a_secret_without_a_value_is_not_put_in(void **state)
{
	(void)state;
	static struct output out;
	struct slice some[N_SECRETS] = {[TWO] = values[TWO]};
	struct body_injector *b = body_injector_new(&plan, some, INJECT_RAW, sink, &out);
	assert_non_null(b);
	out.len = 0;
	feed(b, SLICE("{{KEY_ONE}} {{KEY+TWO}}"));
	assert_int_equal(body_injector_end(b), CAGE_OK);
	assert_int_equal(out.len, 21);
	assert_memory_equal(out.bytes, "{{KEY_ONE}} token-two", 21);
	body_injector_free(&b);
}

static void nothing_goes_on_with_a_value_of_several_lines(void **state)
{
	(void)state;
	static struct output out;
	struct slice bad[N_SECRETS] = {[TWO] = WORD("token\r\ntwo")};
	struct body_injector *b = body_injector_new(&plan, bad, INJECT_RAW, sink, &out);
	assert_non_null(b);
	out.len = 0;
	assert_int_equal(body_injector_feed(b, SLICE("text")), CAGE_EPROTO);
	assert_int_equal(body_injector_end(b), CAGE_EPROTO);
	assert_int_equal(out.len, 0);
	body_injector_free(&b);
}

static void values_in_json_are_a_part_of_their_string(void **state)
{
	(void)state;
	static struct output out;
	struct slice odd[N_SECRETS] = {[TWO] = WORD("a\tb\x01\"\\/\xc3\xa9\x7f")};
	struct body_injector *b = body_injector_new(&plan, odd, INJECT_JSON, sink, &out);
	static const char want[] = "a\\u0009b\\u0001\\\"\\\\/\xc3\xa9\x7f";
	assert_non_null(b);
	out.len = 0;
	feed(b, SLICE("{{KEY+TWO}}"));
	assert_int_equal(body_injector_end(b), CAGE_OK);
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.bytes, want, sizeof(want) - 1);
	body_injector_free(&b);
}

static void the_media_type_says_how(void **state)
{
	static const struct {
		struct slice type;
		enum inject_escape how;
	} types[] = {
		{WORD("application/json"), INJECT_JSON},
		{WORD("Application/JSON ; charset=utf-8"), INJECT_JSON},
		{WORD("application/vnd.api+json"), INJECT_JSON},
		{WORD("application/ld+JSON;profile=x"), INJECT_JSON},
		{WORD("application/x-www-form-urlencoded"), INJECT_FORM},
		{WORD("application/x-www-form-urlencoded;charset=UTF-8"), INJECT_FORM},
		{WORD("multipart/form-data; boundary=x"), INJECT_RAW},
		{WORD("text/plain; a=application/json"), INJECT_RAW},
		{WORD("application/json-seq"), INJECT_RAW},
		{WORD("+json"), INJECT_RAW},
		{WORD(""), INJECT_RAW},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(types); i++) {
		struct field f = {.name = WORD("Content-Type"), .value = types[i].type};
		struct message head = {.fields = &f, .n_fields = 1};
		assert_int_equal(inject_escape_for(&head), types[i].how);
		head.n_fields = 0;
		assert_int_equal(inject_escape_for(&head), INJECT_RAW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders_are_replaced_wherever_the_body_is_cut),
		cmocka_unit_test(placeholders_are_replaced_in_single_bytes),
		cmocka_unit_test(only_a_beginning_is_kept_back),
		cmocka_unit_test(the_longest_placeholder_is_found),
		cmocka_unit_test(a_secret_without_a_value_is_not_put_in),
		cmocka_unit_test(nothing_goes_on_with_a_value_of_several_lines),
		cmocka_unit_test(values_in_json_are_a_part_of_their_string),
		cmocka_unit_test(the_media_type_says_how),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
