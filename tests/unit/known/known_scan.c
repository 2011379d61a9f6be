/* Values and placeholders in a text that comes in pieces: each is reported once, with its place, whatever the cuts. */
#include "tests/unit/known/fixture.h"

#include "inspectors/known/known_scan.h"

#define DIGITS "0123456789abcdef0123456789abcdef"
#define FORMS (KNOWN_IN_VIEWS | 1u << KNOWN_BASE64)

static const struct known_item items[] = {
	{KNOWN_VALUE, 0, WORD("password")},
	{KNOWN_PLACEHOLDER, 1, WORD("{{PLACE}}")},
	{KNOWN_RANDOM_PLACEHOLDER, 0, WORD("cage-ph-")},
};

/* What was reported: "kind@offset=bytes;", one behind the other. */
static void report(void *arg, const struct known_item *item, struct slice bytes, uint64_t offset)
{
	char line[128];
	snprintf(line, sizeof(line), "%d@%u=%.*s;", (int)item->kind, (unsigned)offset, SLICE_FMT(bytes));
	bytes_add(arg, slice_str(line));
}

static void scan_cut(struct known_scan *s, struct slice text, size_t cut, size_t step, struct bytes *out)
{
	out->len = 0;
	known_scan_reset(s, out);
	for (size_t at = 0, n = cut; at < text.len; at += n, n = step) {
		if (n == 0 || n > text.len - at)
			n = text.len - at;
		char *piece = malloc(n);
		assert_non_null(piece);
		memcpy(piece, text.ptr + at, n);
		assert_int_equal(known_scan_feed(s, slice_of(piece, n)), CAGE_OK);
		free(piece);
	}
	assert_int_equal(known_scan_end(s), CAGE_OK);
}

static void assert_reported(const char *text, const char *wanted)
{
	struct known_set *set = known_set_new(items, sizeof(items) / sizeof(items[0]), FORMS);
	assert_non_null(set);
	struct known_scan *s = known_scan_new(set, report, NULL);
	assert_non_null(s);
	struct bytes out = {0};
	size_t len = strlen(text);
	for (size_t i = 0; i <= len + 6; i++) {
		bool is_cut = i <= len;
		scan_cut(s, slice_str(text), is_cut ? i : i - len, is_cut ? 0 : i - len, &out);
		if (!slice_eq(bytes_slice(&out), slice_str(wanted)))
			fail_msg("way %zu: %.*s, not %s", i, SLICE_FMT(bytes_slice(&out)), wanted);
	}
	known_scan_free(&s);
	assert_null(s);
	known_scan_free(&s);
	known_set_unref(&set);
	bytes_free(&out);
}

static void reports_each_once(void **state)
{
	(void)state;
	assert_reported("", "");
	assert_reported("passwor", "");
	assert_reported("password", "0@0=password;");
	assert_reported("my PassWord {{place}}, {{PLACE} drowssap", "0@3=PassWord;1@12={{place}};0@32=drowssap;");
	assert_reported("passwordpasswordrowssap", "0@0=password;0@8=password;");
	assert_reported("cage-ph-" DIGITS "0 cage-ph-0", "2@0=cage-ph-" DIGITS ";");
}

/* In base64 the end of one and the start of the next may be in the same digit. */
static void values_may_share_a_digit(void **state)
{
	(void)state;
	assert_reported("cGFzc3dvcmRwYXNzd29yZHBhc3N3b3Jk", "0@0=cGFzc3dvcmR;0@10=RwYXNzd29yZH;0@21=HBhc3N3b3Jk;");
}

/* A text that was given up leaves nothing behind. */
static void a_reset_forgets(void **state)
{
	(void)state;
	struct known_set *set = known_set_new(items, sizeof(items) / sizeof(items[0]), FORMS);
	struct bytes first = {0}, second = {0};
	assert_non_null(set);
	struct known_scan *s = known_scan_new(set, report, &first);
	assert_non_null(s);
	assert_int_equal(known_scan_feed(s, SLICE("12345 passw")), CAGE_OK);
	known_scan_reset(s, &second);
	assert_int_equal(known_scan_feed(s, SLICE("ord password")), CAGE_OK);
	assert_int_equal(known_scan_end(s), CAGE_OK);
	assert_int_equal(first.len, 0);
	assert_true(slice_eq(bytes_slice(&second), SLICE("0@4=password;")));
	known_scan_free(&s);
	known_set_unref(&set);
	bytes_free(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_each_once),
		cmocka_unit_test(values_may_share_a_digit),
		cmocka_unit_test(a_reset_forgets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
