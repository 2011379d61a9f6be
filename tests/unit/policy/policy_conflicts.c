/* Rules that contradict each other: which pairs are refused, and which only look alike. */
#include "tests/unit/policy/fixture.h"

static void ties(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		const char *error; /* NULL: no tie */
	} list[] = {
		{"hosts: [x.test]", "hosts: [x.test]", "\"x.test\": any path and any path"},
		{"hosts: [x.test]", "hosts: [x.test], paths: [/**]", "\"x.test\": \"/**\" and any path"},
		{"hosts: ['*.x.test']", "hosts: [a.test, '*.X.test']", "\"*.x.test\": any path and any path"},
		{"hosts: [x.test]", "hosts: ['*.test']", NULL},
		{"hosts: ['*.x.test']", "hosts: ['*.test']", NULL},
		{"hosts: [x.test]", "hosts: [x.test], ports: [80]", NULL},
		{"hosts: [x.test], ports: [80, 443]", "hosts: [x.test], ports: [22, 443]",
		 "\"x.test\": any path and any path"},
		{"hosts: [x.test], methods: [GET]", "hosts: [x.test]", NULL},
		{"hosts: [x.test], methods: [GET]", "hosts: [x.test], methods: [POST]", NULL},
		{"hosts: [x.test], methods: [GET, PUT]", "hosts: [x.test], methods: [PUT]",
		 "\"x.test\": any path and any path"},
		{"hosts: [x.test], paths: [/a/**]", "hosts: [x.test], paths: [/b/**]", NULL},
		{"hosts: [x.test], paths: [/a/**]", "hosts: [x.test], paths: [/a/*]", NULL},
		{"hosts: [x.test], paths: [/a/**]", "hosts: [x.test], paths: [/a]", NULL},
		{"hosts: [x.test], paths: [/a/*]", "hosts: [x.test], paths: [/*/a]",
		 "\"x.test\": \"/*/a\" and \"/a/*\""},
		{"hosts: [x.test], paths: [/a/*/c]", "hosts: [x.test], paths: [/z, /a/c/*]",
		 "\"x.test\": \"/a/c/*\" and \"/a/*/c\""},
		{"hosts: [x.test], paths: [/a, /b]", "hosts: [x.test], paths: [/c, /%62]",
		 "\"x.test\": \"/b\" and \"/b\""},
		{"hosts: [x.test], expires: 2001-01-01T00:00:00Z", "hosts: [x.test]",
		 "\"x.test\": any path and any path"},
		{"hosts: [x.test], action: deny", "hosts: [x.test]", NULL},
		{"hosts: [x.test], action: deny", "hosts: [x.test], action: deny", NULL},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char yaml[512], error[256];
		snprintf(yaml, sizeof(yaml), HEAD "rules:\n  - {id: a, %s}\n  - {id: b, %s}\n", list[i].a, list[i].b);
		snprintf(error, sizeof(error),
			 "policy.yaml:5:5: rules[1]: ties with rule \"a\" at %s are equally specific",
			 list[i].error ? list[i].error : "");
		if (list[i].error)
			expect_error(yaml, error);
		else
			expect_good(yaml);
	}
}

/* Each rule that ties is told once, however many hosts it shares. */
static void ties_are_told_once_in_order(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	assert_null(fixture_load(&f, HEAD "rules:\n"
					  "  - {id: a, hosts: [x.test, y.test, z.test]}\n"
					  "  - {id: b, hosts: [z.test, y.test]}\n"
					  "  - {id: c, hosts: [x.test]}\n"));
	assert_int_equal(f.errs->n, 2);
	assert_string_equal(fixture_error(&f, 0), "policy.yaml:5:5: rules[1]: ties with rule \"a\" at \"y.test\": any "
						  "path and any path are equally specific");
	assert_string_equal(fixture_error(&f, 1), "policy.yaml:6:5: rules[2]: ties with rule \"a\" at \"x.test\": any "
						  "path and any path are equally specific");
	fixture_free(&f);
}

static void tunnel_overlaps(void **state)
{
	(void)state;
	static const struct {
		const char *tunnel, *other;
		const char *host; /* NULL: no overlap */
	} list[] = {
		{"hosts: [x.test]", "hosts: [x.test]", "x.test"},
		{"hosts: [x.test]", "hosts: [x.test], methods: [GET], paths: [/a]", "x.test"},
		{"hosts: [x.test]", "hosts: ['*.test']", "x.test"},
		{"hosts: ['*.test']", "hosts: [a.x.test]", "a.x.test"},
		{"hosts: ['*.test']", "hosts: ['*.x.test']", "*.x.test"},
		{"hosts: ['*.x.test']", "hosts: ['*.test']", "*.x.test"},
		{"hosts: ['*.x.test']", "hosts: [x.test]", NULL},
		{"hosts: [x.test], ports: [22]", "hosts: [x.test]", NULL},
		{"hosts: ['*.test'], ports: [22]", "hosts: [x.test], ports: [22], expires: 2001-01-01T00:00:00Z",
		 "x.test"},
		{"hosts: ['*.test', x.test]", "hosts: [y.example]", NULL},
		{"hosts: [x.test]", "hosts: [x.test], action: deny", NULL},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char yaml[512], error[256];
		snprintf(yaml, sizeof(yaml), HEAD "rules:\n  - {id: t, action: tunnel, %s}\n  - {id: o, %s}\n",
			 list[i].tunnel, list[i].other);
		snprintf(error, sizeof(error),
			 "policy.yaml:4:5: rules[0]: the tunnel overlaps rule \"o\" at \"%s\": both match its host and "
			 "port",
			 list[i].host ? list[i].host : "");
		if (list[i].host)
			expect_error(yaml, error);
		else
			expect_good(yaml);
	}
	expect_error(HEAD "rules:\n  - {id: a, action: tunnel, hosts: [x.test]}\n"
			  "  - {id: b, action: tunnel, hosts: ['*.test']}\n",
		     "policy.yaml:5:5: rules[1]: the tunnel overlaps rule \"a\" at \"x.test\": both match its host and "
		     "port");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ties),
		cmocka_unit_test(ties_are_told_once_in_order),
		cmocka_unit_test(tunnel_overlaps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
