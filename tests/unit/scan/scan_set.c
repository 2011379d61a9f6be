/* Sets of formats: what is refused and how, and databases that come from elsewhere. */
#include "tests/unit/scan/fixture.h"

#include <hs/hs.h>

#define PLATFORM_AT 12 /* of the platform in a serialised database: behind magic, version and length */

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, MIB(64));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void must_refuse(struct format bad, const char *part)
{
	struct format formats[] = {{PATTERN("good[0-9]{4}")}, bad};
	struct scan_bytes bytes;
	size_t at = 99;
	const char *why = NULL;
	assert_int_equal(scan_set_compile(formats, 2, &arena, &bytes, &at, &why), CAGE_EPROTO);
	assert_int_equal(at, 1);
	if (!strstr(why, part))
		fail_msg("'%s' has no '%s'", why, part);
}

static void bad_patterns(void **state)
{
	(void)state;
	must_refuse((struct format){PATTERN("a+")}, "upper bound");
	must_refuse((struct format){PATTERN("a{3,}b")}, "upper bound");
	must_refuse((struct format){PATTERN("a{5000}")}, "5000");
	must_refuse((struct format){PATTERN("a{4095}")}, "4095");
	must_refuse((struct format){PATTERN("(?<=a)b")}, "assertion");
	must_refuse((struct format){PATTERN("(a)\\1")}, "");
	must_refuse((struct format){PATTERN("a{0,3}")}, "empty");
	must_refuse((struct format){PATTERN("(a")}, "");
	must_refuse((struct format){PATTERN("[a")}, "");
	must_refuse((struct format){PATTERN("a\0b")}, "NUL");
	must_refuse((struct format){PATTERN("(*UTF8)ab")}, "");
	must_refuse((struct format){PATTERN("")}, "");
}

static void lengths(void **state)
{
	(void)state;
	struct format formats[] = {{PATTERN("\\bAKIA[A-Z2-7]{16}\\b")}, {PATTERN("x{4094}")}, {PATTERN("ab?(c|defg)")}};
	struct scan_bytes bytes;
	size_t at;
	const char *why;
	assert_int_equal(scan_set_compile(formats, 3, &arena, &bytes, &at, &why), CAGE_OK);
	assert_int_equal(formats[0].max_len, 20);
	assert_int_equal(formats[1].max_len, 4094);
	assert_int_equal(formats[2].max_len, 6);
}

/* An empty set finds nothing and needs no bytes. */
static void empty_set(void **state)
{
	(void)state;
	static struct hits hits;
	struct scan_bytes bytes;
	size_t at;
	const char *why;
	assert_int_equal(scan_set_compile(NULL, 0, &arena, &bytes, &at, &why), CAGE_OK);
	struct scan_set *set = scan_set_load(NULL, 0, &bytes);
	assert_non_null(set);
	struct scan *s = scan_new(set, see, NULL);
	assert_non_null(s);
	scan_cut(s, SLICE("anything"), 3, 0, &hits);
	assert_int_equal(hits.n, 0);
	scan_free(&s);
	scan_set_free(&set);
	assert_null(set);
}

static struct format key_format = {PATTERN("key-[0-9]{8}")};

static struct scan_bytes key_bytes(void)
{
	struct scan_bytes bytes;
	size_t at;
	const char *why;
	assert_int_equal(scan_set_compile(&key_format, 1, &arena, &bytes, &at, &why), CAGE_OK);
	return bytes;
}

/* A set loaded from these bytes works. */
static void must_work(struct scan_bytes bytes)
{
	static struct hits hits;
	struct scan_set *set = scan_set_load(&key_format, 1, &bytes);
	assert_non_null(set);
	struct scan *s = scan_new(set, see, NULL);
	assert_non_null(s);
	scan_cut(s, SLICE("a key-12345678"), 5, 0, &hits);
	assert_int_equal(hits.n, 1);
	assert_int_equal(hits.list[0].offset, 2);
	assert_ptr_equal(hits.list[0].format, &key_format);
	hits_clear(&hits);
	scan_free(&s);
	scan_set_free(&set);
}

static void other_processors(void **state)
{
	(void)state;
	struct scan_bytes bytes = key_bytes();
	hs_database_t *database = NULL;
	must_work(bytes);
	char *other = (char *)bytes.of[SCAN_EVERYWHERE].ptr;
	for (int bit = 0; bit < 64; bit++) {
		other[PLATFORM_AT + bit / 8] ^= (char)(1 << bit % 8);
		must_work(bytes);
		other[PLATFORM_AT + bit / 8] ^= (char)(1 << bit % 8);
	}
	memset(other + PLATFORM_AT, 0xff, 8);
	assert_int_equal(hs_deserialize_database(other, bytes.of[SCAN_EVERYWHERE].len, &database),
			 HS_DB_PLATFORM_ERROR);
	must_work(bytes);
}

static void other_versions_and_broken_bytes(void **state)
{
	(void)state;
	struct scan_bytes bytes = key_bytes();
	struct slice *database = &bytes.of[SCAN_EVERYWHERE];
	char *broken = (char *)database->ptr;
	for (size_t i = 0; i < database->len; i += i < 64 ? 1 : 97) {
		broken[i] ^= 0x55;
		must_work(bytes);
		broken[i] ^= 0x55;
	}
	*database = slice_head(*database, database->len / 2);
	must_work(bytes);
}

/* Bytes for a lesser processor may be used as they are, or not: it works. */
static void lesser_processor(void **state)
{
	(void)state;
	const hs_platform_info_t lesser = {.tune = HS_TUNE_FAMILY_GENERIC};
	hs_database_t *database = NULL;
	hs_compile_error_t *error = NULL;
	char *bytes = NULL;
	size_t len = 0;
	assert_int_equal(hs_compile("key-[0-9]{8}", HS_FLAG_DOTALL, HS_MODE_STREAM, &lesser, &database, &error),
			 HS_SUCCESS);
	assert_int_equal(hs_serialize_database(database, &bytes, &len), HS_SUCCESS);
	(void)key_bytes(); /* for max_len */
	must_work((struct scan_bytes){.of[SCAN_EVERYWHERE] = slice_of(bytes, len)});
	free(bytes);
	hs_free_database(database);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_patterns, setup, teardown),
		cmocka_unit_test_setup_teardown(lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_set, setup, teardown),
		cmocka_unit_test_setup_teardown(other_processors, setup, teardown),
		cmocka_unit_test_setup_teardown(other_versions_and_broken_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(lesser_processor, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
