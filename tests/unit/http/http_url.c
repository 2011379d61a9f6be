/* Paths and whole URLs: the canonical form, the loose one, and what is sent and logged. */
#include "tests/unit/http/fixture.h"

#include "core/http/url.h"

static void assert_path_refused(struct slice text)
{
	struct target t = {0};
	const char *why = NULL;
	if (path_parse(text, &arena, &t, &why) == CAGE_OK)
		fail_msg("accepted: %.*s", SLICE_FMT(text));
	assert_non_null(why);
}

struct path_case {
	const char *text, *path, *loose, *query;
};

static void t20_paths(void **state)
{
	(void)state;
	static const struct path_case cases[] = {
		{"/", "/", "/", ""},
		{"/a/b", "/a/b", "/a/b", ""},
		{"/a?x=1&y=%zz", "/a", "/a", "?x=1&y=%zz"},
		{"/a?", "/a", "/a", "?"},
		{"/a?/../b?c", "/a", "/a", "?/../b?c"},
		{"/a?x=\\\"1\\\"", "/a", "/a", "?x=\\\"1\\\""},
		{"*", "*", "*", ""},
		/* escapes */
		{"/%61%7e%2d", "/a~-", "/a~-", ""},
		{"/%c3%a9", "/%C3%A9", "/\xc3\xa9", ""},
		{"/a%20b", "/a%20b", "/a b", ""},
		{"/a\"<>{}|^`b", "/a\"<>{}|^`b", "/a\"<>{}|^`b", ""},
		/* dots */
		{"/a/./b", "/a/b", "/a/b", ""},
		{"/a/../b", "/b", "/b", ""},
		{"/a/b/..", "/a/", "/a/", ""},
		{"/a/b/.", "/a/b/", "/a/b/", ""},
		{"/a/..", "/", "/", ""},
		{"/.", "/", "/", ""},
		{"/a/%2e%2E/b", "/b", "/b", ""},
		{"/a/%2e/b", "/a/b", "/a/b", ""},
		{"/.a/..b/c./...", "/.a/..b/c./...", "/.a/..b/c./...", ""},
		{"/a//../b", "/a/b", "/a/b", ""},
		/* what an origin may read differently */
		{"/a//b", "/a//b", "/a/b", ""},
		{"/a///", "/a///", "/a/", ""},
		{"//a", "//a", "/a", ""},
		{"/.//a", "//a", "/a", ""},
		{"/a%2Fb", "/a%2Fb", "/a/b", ""},
		{"/a%2f%2Fb", "/a%2F%2Fb", "/a/b", ""},
		{"/a%5cb", "/a%5Cb", "/a/b", ""},
		{"/a/..%5c..%2fb/../c/d/e", "/a/c/d/e", "/a/c/d/e", ""},
		{"/a;x=1/b", "/a;x=1/b", "/a/b", ""},
		{"/a%3bx/b", "/a%3Bx/b", "/a/b", ""},
		{"/;/a", "/;/a", "/a", ""},
		/* encoded twice and three times */
		{"/a%252fb", "/a%252fb", "/a/b", ""},
		{"/%25252e%25252eb", "/%25252e%25252eb", "/..b", ""},
		/* an origin that decodes first finds a query or a fragment */
		{"/a%3fb", "/a%3Fb", "/a", ""},
		{"/a%2523/b", "/a%2523/b", "/a", ""},
		{"/%25%36%31", "/%2561", "/a", ""},
		{"/100%25", "/100%25", "/100%", ""},
		{"/%25zz", "/%25zz", "/%zz", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target t = {0};
		const char *why = NULL;
		if (path_parse(slice_str(cases[i].text), &arena, &t, &why) != CAGE_OK)
			fail_msg("refused: %s: %s", cases[i].text, why);
		assert_slice(t.path, cases[i].path);
		assert_slice(t.loose, cases[i].loose);
		assert_slice(t.query, cases[i].query);
	}
}

/* What is sent is what would be matched if it came in again. */
static void t20_canonical_is_stable(void **state)
{
	(void)state;
	static const char *const paths[] = {"/a/%2e%2E/b//c/./%7e%c3;x?q=%zz", "/%25%36%31/%2f", "//./a/.."};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct target t = {0}, again = {0};
		const char *why;
		assert_int_equal(path_parse(slice_str(paths[i]), &arena, &t, &why), CAGE_OK);
		assert_int_equal(path_parse(target_send(&t, &arena), &arena, &again, &why), CAGE_OK);
		assert_true(slice_eq(t.path, again.path));
		assert_true(slice_eq(t.loose, again.loose));
		assert_true(slice_eq(t.query, again.query));
	}
}

static void t05_t20_paths_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"a",
		"**",
		"*?x",
		"/a#b",
		"/a?b#c",
		"/a\\b",
		"/a b",
		"/a\tb",
		"/a?b c",
		"/%",
		"/%4",
		"/%zz",
		"/a%4gb",
		"/%00",
		"/a%2500b",
		"/..",
		"/../a",
		"/a/../..",
		"/a/../../b",
		"/%2e%2e/a",
		"/./..",
		"/..;/a",
		"/..%2fa",
		"/a/..%2f..%2fb",
		/* dot segments that only some origins see */
		"/a/..%2fb",
		"/a/..%5cb",
		"/a/..;/b",
		"/a/.%2fb",
		"/a/%252e%252e/b",
		"/%25252e/b",
		"/a%3fx%2f..%2fb",
		"/a%23x%5c..%5cb",
		"/a%253fx%252f.%252fb",
		"/a%3fx/..%3fb",
		/* a parameter and a hidden slash: two orders of looking, two paths */
		"/pub/..;%2Fpub/admin",
		"/user/keys;%2f..%2f..%2fx",
		"/admin;%2fx",
		"/admin%3b%2fx",
		"/admin;%255cx",
		"/..%5ca",
		"/%252e%252e/a",
		"/a\x7f",
		"/\xc3\xa9",
		"/a?\xc3\xa9",
		"/%2525252e",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_path_refused(slice_str(bad[i]));
	assert_path_refused(SLICE("/a\0b"));
	assert_path_refused(SLICE("/a?b\0"));
}

static void target_limit(void **state)
{
	(void)state;
	static char path[LIMIT_TARGET + 1];
	struct target t = {0};
	const char *why = NULL;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	assert_int_equal(path_parse(slice_of(path, LIMIT_TARGET), &arena, &t, &why), CAGE_OK);
	assert_int_equal(t.path.len, LIMIT_TARGET);
	assert_int_equal(path_parse(slice_of(path, LIMIT_TARGET + 1), &arena, &t, &why), CAGE_ELIMIT);
	memcpy(path, "http://a/", 9);
	assert_int_equal(url_parse(slice_of(path, LIMIT_TARGET), &arena, &t, &why), CAGE_OK);
	assert_int_equal(url_parse(slice_of(path, LIMIT_TARGET + 1), &arena, &t, &why), CAGE_ELIMIT);
}

struct url_case {
	const char *url;
	enum scheme scheme;
	const char *header, *send, *logged;
	uint16_t port;
};

static void urls(void **state)
{
	(void)state;
	static const struct url_case cases[] = {
		{"http://example.com", SCHEME_HTTP, "example.com", "/", "/", 80},
		{"HTTPS://Example.COM.:443/a", SCHEME_HTTPS, "example.com", "/a", "/a", 443},
		{"https://example.com:80/", SCHEME_HTTPS, "example.com:80", "/", "/", 80},
		{"http://example.com:?x=1", SCHEME_HTTP, "example.com", "/?x=1", "/?x=", 80},
		{"http://[2001:DB8::0:1]:8080/a/../b", SCHEME_HTTP, "[2001:db8::1]:8080", "/b", "/b", 8080},
		{"http://192.0.2.1/?a", SCHEME_HTTP, "192.0.2.1", "/?a", "/?a", 80},
		{"http://a.test/p?x=1&y=2=3&&z&w=a;b=c", SCHEME_HTTP, "a.test", "/p?x=1&y=2=3&&z&w=a;b=c",
		 "/p?x=&y=&&z&w=", 80},
		{"http://a.test/p?=secret", SCHEME_HTTP, "a.test", "/p?=secret", "/p?=", 80},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct target t;
		const char *why = NULL;
		if (url_parse(slice_str(cases[i].url), &arena, &t, &why) != CAGE_OK)
			fail_msg("refused: %s: %s", cases[i].url, why);
		assert_int_equal(t.scheme, cases[i].scheme);
		assert_int_equal(t.port, cases[i].port);
		assert_slice(host_header(&t, &arena), cases[i].header);
		assert_slice(target_send(&t, &arena), cases[i].send);
		assert_slice(target_logged(&t, &arena), cases[i].logged);
	}
}

static void t05_urls_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "http:",
					  "http:/",
					  "http://",
					  "http:///a",
					  "http://:80/",
					  "http://:",
					  "ftp://a.test/",
					  "//a.test/",
					  "http:\\\\a.test\\",
					  "http://a.test\\@b.test/",
					  "http://user@a.test/",
					  "http://user:pw@a.test/",
					  "http://@a.test/",
					  "http://a.test#f",
					  "http://a.test/#f",
					  "http://a.test?x#f",
					  "http://a.test/ b",
					  "http://a .test/",
					  "http://a.test\t/",
					  "http://a.test:0/",
					  "http://a.test:80x/",
					  "http://a%2etest/",
					  "http://127.1/",
					  "http://a.test/../b",
					  " http://a.test/"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct target t;
		const char *why = NULL;
		if (url_parse(slice_str(bad[i]), &arena, &t, &why) == CAGE_OK)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(why);
	}
}

static void asterisk_is_sent_as_it_is(void **state)
{
	(void)state;
	struct target t = {0};
	const char *why;
	assert_int_equal(path_parse(SLICE("*"), &arena, &t, &why), CAGE_OK);
	assert_slice(target_send(&t, &arena), "*");
	assert_slice(target_logged(&t, &arena), "*");
}

/* Every size of arena that is too small ends in CAGE_ENOMEM, and none in a crash. */
static void assert_no_memory_is_said(struct slice url)
{
	bool done = false;
	for (size_t room = 0; room < 1024 && !done; room += 16) {
		struct arena small;
		struct target t;
		const char *why = NULL;
		arena_init(&small, room);
		enum cage_status st = url_parse(url, &small, &t, &why);
		done = st == CAGE_OK;
		if (done) {
			assert_null(host_header(&t, &small).ptr);
			assert_null(target_send(&t, &small).ptr);
			assert_null(target_logged(&t, &small).ptr);
		} else {
			assert_int_equal(st, CAGE_ENOMEM);
			assert_non_null(why);
		}
		arena_free(&small);
	}
	assert_true(done);
}

static void no_memory_is_said(void **state)
{
	(void)state;
	assert_no_memory_is_said(SLICE("http://a.test?x=%41"));
	assert_no_memory_is_said(SLICE("http://a.test/%41?x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t20_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(t20_canonical_is_stable, setup, teardown),
		cmocka_unit_test_setup_teardown(t05_t20_paths_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(target_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(urls, setup, teardown),
		cmocka_unit_test_setup_teardown(t05_urls_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(asterisk_is_sent_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
