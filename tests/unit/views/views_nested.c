/* Encodings inside encodings: every combination, as deep as they are looked for, is read to the bottom (THREATS T29). */
#include "tests/unit/views/fixture.h"

static struct views *views;
static struct kept kept;

static int setup(void **state)
{
	(void)state;
	views = views_new(&keeper, &kept);
	return views ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	views_free(&views);
	kept_clear(&kept);
	return 0;
}

/* The marker in these encodings, outermost first, inside something that is plain. */
static struct bytes wrap(const enum view_kind *kinds, unsigned depth)
{
	struct bytes input = {0}, inner = {0};
	bytes_add(&inner, SLICE(MARKER));
	for (unsigned i = depth; i-- > 0;) {
		struct bytes outer = {0};
		encode(&outer, bytes_slice(&inner), kinds[i]);
		bytes_free(&inner);
		inner = outer;
	}
	bytes_add(&input, SLICE("{\"content\": \""));
	bytes_add(&input, bytes_slice(&inner));
	bytes_add(&input, SLICE("\", \"role\": \"user\"}"));
	bytes_free(&inner);
	return input;
}

/* UTF-16 as it is looked for has no NUL in its text, so there is none in it directly. */
static bool is_possible(const enum view_kind *kinds, unsigned depth)
{
	for (unsigned i = 1; i < depth; i++)
		if (kinds[i - 1] == VIEW_UTF16 && kinds[i] == VIEW_UTF16)
			return false;
	return true;
}

static void assert_found(const enum view_kind *kinds, unsigned depth)
{
	if (!is_possible(kinds, depth))
		return;
	struct bytes input = wrap(kinds, depth);
	const size_t cuts[] = {input.len, 0, 1, input.len / 2, input.len - 1, 64, 100};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		keep_all(views, &kept, bytes_slice(&input), cuts[i]);
		if (!kept_has(&kept, kinds, depth, SLICE(MARKER)))
			fail_msg("%d %d %d, cut at %zu: %.*s", (int)kinds[0], depth > 1 ? (int)kinds[1] : -1,
				 depth > 2 ? (int)kinds[2] : -1, cuts[i], SLICE_FMT(bytes_slice(&input)));
	}
	bytes_free(&input);
}

static void two_deep(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VIEW_KINDS * VIEW_KINDS; i++)
		assert_found((const enum view_kind[]){i / VIEW_KINDS, i % VIEW_KINDS}, 2);
}

static void three_deep(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VIEW_KINDS * VIEW_KINDS * VIEW_KINDS; i++)
		assert_found((const enum view_kind[]){i / VIEW_KINDS / VIEW_KINDS, i / VIEW_KINDS % VIEW_KINDS,
						      i % VIEW_KINDS},
			     3);
}

/* As a tool call in a chat has it: base64 over lines, in JSON, in a string of JSON. */
static void json_in_json(void **state)
{
	(void)state;
	static const char text[] = "{\"arguments\": \"{\\\"data\\\": \\\"\\\\u0053ECRET-MARKER-0123456789\\\"}\"}";
	const enum view_kind kinds[] = {VIEW_JSON, VIEW_JSON};
	keep_all(views, &kept, slice_str(text), 0);
	assert_true(kept_has(&kept, kinds, 2, SLICE(MARKER)));
}

/* Nothing is looked for below the last view. */
static void not_deeper(void **state)
{
	(void)state;
	const enum view_kind kinds[] = {VIEW_BASE64, VIEW_BASE64, VIEW_BASE64, VIEW_BASE64};
	struct bytes input = wrap(kinds, 4);
	keep_all(views, &kept, bytes_slice(&input), 0);
	for (size_t i = 0; i < kept.n_texts; i++)
		assert_true(kept.texts[i]->view.depth <= LIMIT_VIEW_DEPTH);
	bytes_free(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_deep),
		cmocka_unit_test(three_deep),
		cmocka_unit_test(json_in_json),
		cmocka_unit_test(not_deeper),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
