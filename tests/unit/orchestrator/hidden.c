/* Values that were sent are found again in whatever form they come back. */
#include "orchestrator/azure/hidden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/base/limits.h"

static bool is_in(const char *value, const char *text)
{
	struct hidden h = {0};
	hidden_add(&h, slice_str(value));
	const bool found = hidden_is_in(&h, text);
	hidden_wipe(&h);
	return found;
}

static void plain(void **state)
{
	(void)state;
	assert_true(is_in("12345678", "x12345678y"));
	assert_false(is_in("12345678", "x1234567y"));
	assert_false(is_in("1234567", "1234567")); /* too short */
	assert_true(is_in("first line here\nsecond line", "only second line of it"));
	assert_false(is_in("12345678", ""));
	assert_true(is_in("100%ab12cd", "is 100%ab12cd"));
	assert_true(is_in("ab12cd34ef", "is 100%ab12cd34ef")); /* "%ab" is no byte of an address there */
}

static void escaped_for_json(void **state)
{
	(void)state;
	assert_true(is_in("say \"it\" now", "say \\\"it\\\" now"));
	assert_true(is_in("say \"it\" now", "say \\\\\\\"it\\\\\\\" now"));
	assert_true(is_in("a&b<c>d'e", "a\\u0026b\\u003Cc\\u003ed\\u0027e"));
	assert_true(is_in("two\nlines here", "\\\"two\\nlines here\\\""));
	assert_true(is_in("a/path/or/so", "a\\/path\\/or\\/so"));
	assert_false(is_in("12345678", "1234567\\"));
	assert_false(is_in("12345678", "\\u0031\\u00"));
}

static void percent_encoded(void **state)
{
	(void)state;
	assert_true(is_in("p@ss w\xc3\xb6rd/+", "url?x=p%40ss%20w%C3%b6rd%2F%2b&y"));
	assert_true(is_in("p@ss word/+", "form x=p%40ss+word%2F%2B"));
	assert_true(is_in("just some words", "just+some+words"));
	assert_true(is_in("p@ss-word", "twice p%2540ss%252Dword"));
	assert_true(is_in("p@ss-word", "each letter %70%40%73%73%2d%77%6f%72%64"));
	assert_true(is_in("say \"it\" now", "%7B%22x%22%3A%22say%20%5C%22it%5C%22%20now%22%7D"));
	assert_false(is_in("p@ss-word", "p%40ss%2Dwor"));
	assert_false(is_in("p@ss-word", "100% of p%4"));
}

/* Of something in which the value stands behind so many bytes. */
static void check_base64(const char *value, size_t before, bool is_url)
{
	char bytes[200], digits[BASE64_DIGITS(sizeof(bytes)) + 1], text[400];
	const int n = snprintf(bytes, sizeof(bytes), "%.*s%s!", (int)before, "abcdef", value);
	base64_write(slice_of(bytes, (size_t)n), digits);
	digits[BASE64_DIGITS((size_t)n)] = '\0';
	for (char *d = digits; is_url && *d; d++)
		*d = *d == '+' ? '-' : *d == '/' ? '_' : *d;
	snprintf(text, sizeof(text), "Basic %s is refused", digits);
	assert_true(is_in(value, text));
	assert_false(is_in("another value", text));
}

static void in_base64(void **state)
{
	(void)state;
	static const char *const values[] = {"12345678", "123456789", "a>b?c~d\xff\xfe\xfd z>>>???",
					     "p@ss-w\xc3\xb6rd"};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t before = 0; before < 6; before++) {
			check_base64(values[i], before, false);
			check_base64(values[i], before, true);
		}
	assert_true(is_in("a long secret value of many bytes",
			  "YSBsb25nIHNlY3JldCB2\r\nYWx1ZSBvZiBtYW55IGJ5dGVz")); /* in lines */
	assert_true(is_in("a>b?c~d>e?f~g", "YT5iP2N+ZD5lP2Z%2BZw%3D%3D"));
	assert_true(is_in("a>b?c~d???????", "\\\"YT5iP2N+ZD8/Pz8/Pz8=\\\""));
	assert_true(is_in("a>b?c~d???????", "\\\"YT5iP2N+ZD8\\/Pz8\\/Pz8=\\\""));
}

static void in_base64_of_another_form(void **state)
{
	(void)state;
	assert_true(is_in("a long secret", "is WVNCc2IyNW5JSE5sWTNKbGRBPT0= there")); /* of base64 */
	assert_true(is_in("a long secret", "WVNCc2IyNW5JSE5sWTNKbGRB"));
	assert_true(is_in("say \"it\" now", "Basic eyJ4Ijoic2F5IFwiaXRcIiBub3cifQ==")); /* of JSON */
	assert_true(is_in("p@ss word/+", "x=eD1wJTQwc3MlMjB3b3JkJTJGJTJC"));            /* of an address */
	assert_false(is_in("a long secret", "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/cage"));
	assert_false(is_in("a long secret", "WVNCc2IyNW5JSE5sWTNK"));
}

static bool is_in_bytes(struct slice value, const char *text)
{
	struct hidden h = {0};
	hidden_add(&h, value);
	const bool found = hidden_is_in(&h, text);
	hidden_wipe(&h);
	return found;
}

static void with_nul(void **state)
{
	(void)state;
	const struct slice value = SLICE("\0\0first part\0second part\0");
	assert_false(is_in_bytes(value, "anything"));
	assert_false(is_in_bytes(SLICE("\0\0\0\0\0\0\0\0\0"), "anything"));
	assert_true(is_in_bytes(value, "the first part of it"));
	assert_true(is_in_bytes(value, "the second part of it"));
	assert_true(is_in_bytes(value, "AABmaXJzdCBwYXJ0AHNlY29uZCBwYXJ0AA=="));
}

static void with_carriage_returns(void **state)
{
	(void)state;
	assert_true(is_in("first line here\r\nsecond line\r\n", "only second line of it"));
	assert_true(is_in("first line here\r\nsecond line", "first line here, and"));
	assert_false(is_in("\r\n\r\n\r\n\r\n\r\n", "anything"));
}

/* Nobody knows what is below: it counts as found. */
static void too_much(void **state)
{
	(void)state;
	char *deep = calloc(1, (size_t)1 << (LIMIT_DEPLOY_NESTED + 3)), *wide = malloc(LIMIT_AZURE_DECODED + 2);
	assert_non_null(deep);
	assert_non_null(wide);
	memset(deep, '\\', (size_t)1 << (LIMIT_DEPLOY_NESTED + 2));
	assert_true(is_in("12345678", deep));
	deep[1 << (LIMIT_DEPLOY_NESTED - 1)] = '\0';
	assert_false(is_in("12345678", deep));
	memset(wide, 'x', LIMIT_AZURE_DECODED + 1);
	wide[LIMIT_AZURE_DECODED + 1] = '\0';
	assert_true(is_in("12345678", wide));
	wide[LIMIT_AZURE_DECODED / 8] = '\0';
	assert_false(is_in("12345678", wide));
	free(deep);
	free(wide);
}

static void without_memory(void **state)
{
	(void)state;
	struct hidden h = {.values.failed = true};
	assert_true(hidden_is_in(&h, "anything"));
	h = (struct hidden){0};
	assert_false(hidden_is_in(&h, "anything"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(escaped_for_json),
		cmocka_unit_test(percent_encoded),
		cmocka_unit_test(in_base64),
		cmocka_unit_test(too_much),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(in_base64_of_another_form),
		cmocka_unit_test(with_nul),
		cmocka_unit_test(with_carriage_returns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
