/* Hosts and authorities have one spelling each, and every odd one is refused. */
#include "tests/unit/http/fixture.h"

#include "core/http/url.h"

static void assert_refused(struct slice text)
{
	struct host host;
	const char *why = NULL;
	if (host_parse(text, &arena, &host, &why) != CAGE_EPROTO)
		fail_msg("accepted: %.*s", SLICE_FMT(text));
	assert_non_null(why);
}

static void assert_host(const char *text, const char *canonical, enum host_kind kind)
{
	struct host host;
	const char *why = NULL;
	if (host_parse(slice_str(text), &arena, &host, &why) != CAGE_OK)
		fail_msg("refused: %s: %s", text, why);
	assert_slice(host.text, canonical);
	assert_int_equal(host.kind, kind);
}

static void t03_case_and_root_dot(void **state)
{
	(void)state;
	assert_host("example.com", "example.com", HOST_NAME);
	assert_host("EXAMPLE.Com", "example.com", HOST_NAME);
	assert_host("example.com.", "example.com", HOST_NAME);
	assert_host("localhost", "localhost", HOST_NAME);
	assert_host("127.0.0.1.", "127.0.0.1", HOST_ADDRESS);
	static const char *const bad[] = {"",
					  ".",
					  "..",
					  "example.com..",
					  ".example.com",
					  "a..b",
					  "127.0.0.1..",
					  "example.com:80",
					  "[example.com]",
					  "[::1",
					  "::1",
					  "[]",
					  "[::1]x",
					  "[::1].",
					  "]"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(slice_str(bad[i]));
}

static void t01_no_byte_but_those_of_names(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
			    c == '_' || c == '.';
		char text[] = "ex?mple.com";
		text[2] = (char)c;
		struct host host;
		const char *why;
		enum cage_status st = host_parse(slice_of(text, sizeof(text) - 1), &arena, &host, &why);
		assert_int_equal(st, good ? CAGE_OK : CAGE_EPROTO);
	}
	assert_refused(SLICE("good.test\0.evil.test"));
	assert_refused(SLICE("good.test\0"));
}

static void t06_labels_and_lengths(void **state)
{
	(void)state;
	char label[LIMIT_LABEL + 2];
	memset(label, 'a', sizeof(label));
	label[LIMIT_LABEL] = 0;
	assert_host(label, label, HOST_NAME);
	assert_refused(slice_of("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", LIMIT_LABEL + 1));

	char name[LIMIT_HOST + 3];
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	struct host host;
	const char *why;
	assert_int_equal(host_parse(slice_of(name, LIMIT_HOST), &arena, &host, &why), CAGE_OK);
	assert_int_equal(host_parse(slice_of(name, LIMIT_HOST + 1), &arena, &host, &why), CAGE_OK); /* a root dot */
	assert_refused(slice_of(name, LIMIT_HOST + 2));

	assert_host("_dmarc.a_b.test", "_dmarc.a_b.test", HOST_NAME);
	assert_host("xn--bcher-kva.test", "xn--bcher-kva.test", HOST_NAME);
	assert_host("r3--sn-abc.test", "r3--sn-abc.test", HOST_NAME);
	assert_refused(SLICE("-a.test"));
	assert_refused(SLICE("a-.test"));
	assert_refused(SLICE("b\xc3\xbc"
			     "cher.test"));
	assert_refused(SLICE("example\xe3\x80\x82"
			     "com"));
}

static void t07_addresses_in_one_spelling(void **state)
{
	(void)state;
	assert_host("127.0.0.1", "127.0.0.1", HOST_ADDRESS);
	assert_host("[::1]", "::1", HOST_ADDRESS);
	assert_host("[2001:DB8:0:0:0:0:0:1]", "2001:db8::1", HOST_ADDRESS);
	assert_host("[::ffff:127.0.0.1]", "::ffff:127.0.0.1", HOST_ADDRESS);
	assert_host("1.2.3.4.example", "1.2.3.4.example", HOST_NAME);
	assert_host("0x7f.example", "0x7f.example", HOST_NAME);
	assert_host("1.0x7g", "1.0x7g", HOST_NAME);
	static const char *const bad[] = {"127.1",       "2130706433", "0x7f.1",       "0x7f000001",  "010.0.0.1",
					  "0",           "0x",         "1.2.3",        "1.2.3.4.5",   "256.1.1.1",
					  "1.2.3.04",    "a.0x1",      "a.1",          "example.123", "0177.0.0.1",
					  "[127.0.0.1]", "[::1%25lo]", "[fe80::1%lo]", "0X7F.0.0.1",  "1.2.3.0x4"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(slice_str(bad[i]));
}

static void assert_authority(const char *text, uint16_t default_port, const char *host_text, uint16_t wanted)
{
	struct host host;
	uint16_t port = 0;
	const char *why = NULL;
	if (authority_parse(slice_str(text), default_port, &arena, &host, &port, &why) != CAGE_OK)
		fail_msg("refused: %s: %s", text, why);
	assert_slice(host.text, host_text);
	assert_int_equal(port, wanted);
}

static void authorities(void **state)
{
	(void)state;
	assert_authority("example.com", 80, "example.com", 80);
	assert_authority("example.com:", 443, "example.com", 443);
	assert_authority("example.com:1", 0, "example.com", 1);
	assert_authority("EXAMPLE.com.:65535", 0, "example.com", 65535);
	assert_authority("[::1]:8080", 0, "::1", 8080);
	assert_authority("[::1]", 80, "::1", 80);
	static const char *const bad[] = {"example.com",
					  "example.com:",
					  "example.com:0",
					  "example.com:65536",
					  "example.com:080",
					  "example.com:+80",
					  "example.com:8 0",
					  "example.com:99999999999999999999",
					  "example.com:80:80",
					  ":80",
					  "a@example.com:80",
					  "[::1]80",
					  "[::1]:",
					  "::1:80",
					  "",
					  "example.com:http"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct host host;
		uint16_t port;
		const char *why = NULL;
		if (authority_parse(slice_str(bad[i]), 0, &arena, &host, &port, &why) != CAGE_EPROTO)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(why);
	}
}

static void t04_equal_only_when_the_same(void **state)
{
	(void)state;
	struct host a, b, c;
	const char *why;
	assert_int_equal(host_parse(SLICE("Example.COM."), &arena, &a, &why), CAGE_OK);
	assert_int_equal(host_parse(SLICE("example.com"), &arena, &b, &why), CAGE_OK);
	assert_int_equal(host_parse(SLICE("notexample.com"), &arena, &c, &why), CAGE_OK);
	assert_true(host_eq(&a, &b));
	assert_false(host_eq(&a, &c));
	assert_int_equal(host_parse(SLICE("example.com.evil.test"), &arena, &c, &why), CAGE_OK);
	assert_false(host_eq(&a, &c));
}

static void no_memory_is_said(void **state)
{
	(void)state;
	struct arena none;
	struct host host;
	const char *why = NULL;
	arena_init(&none, 0);
	assert_int_equal(host_parse(SLICE("a.test"), &none, &host, &why), CAGE_ENOMEM);
	assert_non_null(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t01_no_byte_but_those_of_names, setup, teardown),
		cmocka_unit_test_setup_teardown(t03_case_and_root_dot, setup, teardown),
		cmocka_unit_test_setup_teardown(t04_equal_only_when_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(t06_labels_and_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(t07_addresses_in_one_spelling, setup, teardown),
		cmocka_unit_test_setup_teardown(authorities, setup, teardown),
		cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
