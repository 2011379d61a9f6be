/* Answers of others: letters that no text can have are mended, and what is to be taken out is looked for in all that is text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/azure/json_mend.h"
#include "orchestrator/azure/json_scrub.h"

/* ---- mending ---- */

static void check_mended(const char *text, const char *want)
{
	const size_t n = strlen(text);
	char *copy = strdup(text);
	assert_non_null(copy);
	json_mend(copy, n);
	assert_string_equal(copy, want);
	free(copy);
}

static void escapes(void **state)
{
	(void)state;
	check_mended("[\"a\\u0000b\"]", "[\"a\\ufffdb\"]");
	check_mended("[\"\\ud83d\"]", "[\"\\ufffd\"]");
	check_mended("[\"\\udc00\\ud83d\\udc00\"]", "[\"\\ufffd\\ud83d\\udc00\"]");
	check_mended("[\"\\ud83d\\ud83d\\udc00\"]", "[\"\\ufffd\\ud83d\\udc00\"]");
	check_mended("[\"\\uD83D\\n\\uDFFF\"]", "[\"\\ufffd\\n\\ufffd\"]");
	check_mended("[\"\\\\u0000\\u0001\"]", "[\"\\\\u0000\\u0001\"]"); /* a backslash and five letters */
	check_mended("[\"\\\\\\u0000\"]", "[\"\\\\\\ufffd\"]");
	check_mended("{\"\\u0000\":\"\\\"\\u0000\"}", "{\"\\ufffd\":\"\\\"\\ufffd\"}");
}

static void what_is_no_json(void **state)
{
	(void)state;
	check_mended("\\u0000", "\\u0000");
	check_mended("[\"\\u00", "[\"\\u00");
	check_mended("[\"\\ud83d\\u00", "[\"\\ufffd\\u00");
	check_mended("[\"\\", "[\"\\");
	check_mended("", "");
}

static void bytes(void **state)
{
	(void)state;
	check_mended("[\"\xff\xc3\xa9\xc3\", \"\x01\"]", "[\"?\xc3\xa9?\", \"?\"]");
	check_mended("[\n\t\"a\"\xff]", "[\n\t\"a\"\xff]");
	char text[] = "[\"a\0b\"]";
	json_mend(text, sizeof(text) - 1);
	assert_string_equal(text, "[\"a?b\"]");
}

/* ---- scrubbing ---- */

static bool hide(const void *arg, json_t *text)
{
	return !strstr(json_string_value(text), arg) || json_string_set(text, "(hidden)") == 0;
}

static bool give_up(const void *arg, json_t *text)
{
	return strcmp(json_string_value(text), arg) != 0;
}

static void check_scrubbed(const char *text, const char *want)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	assert_true(json_scrub(value, hide, "1234"));
	char *got = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(got, want);
	free(got);
	json_decref(value);
}

static void all_that_is_text(void **state)
{
	(void)state;
	check_scrubbed("\"a1234\"", "\"(hidden)\"");
	check_scrubbed("[\"1234\", 51234, 1.1234, 123, true, null]",
		       "[\"(hidden)\",\"(hidden)\",\"(hidden)\",123,true,null]");
	check_scrubbed("{\"a\": 1234, \"b\": \"1234\", \"c\": {\"d\": [[12345]]}}",
		       "{\"a\":\"(hidden)\",\"b\":\"(hidden)\",\"c\":{\"d\":[[\"(hidden)\"]]}}");
}

static void names(void **state)
{
	(void)state;
	check_scrubbed("{\"x1234\": 1, \"b\": {\"1234\": {\"1234y\": \"1234\"}}}",
		       "{\"b\":{\"(hidden)\":{\"(hidden)\":\"(hidden)\"}},\"(hidden)\":1}");
	check_scrubbed("{\"1234\": 1, \"12345\": 2, \"(hidden)\": 3, \"z\": 4}", "{\"(hidden)\":2,\"z\":4}");
	check_scrubbed("{\"1234\": 1234}", "{\"(hidden)\":\"(hidden)\"}");
}

static void without_memory(void **state)
{
	(void)state;
	static const char *const texts[] = {"{\"a\": \"bad\"}", "{\"bad\": 1}", "[[{\"a\": [\"bad\"]}], 1]"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *value = json_loads(texts[i], 0, NULL);
		assert_false(json_scrub(value, give_up, "bad"));
		json_decref(value);
	}
	assert_true(json_scrub(NULL, give_up, "bad"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),          cmocka_unit_test(what_is_no_json), cmocka_unit_test(bytes),
		cmocka_unit_test(all_that_is_text), cmocka_unit_test(names),           cmocka_unit_test(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
