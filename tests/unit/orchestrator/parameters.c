/* Parameters of a template, and what is taken out of answers because of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/limits.h"
#include "orchestrator/deploy/parameters.h"

static const char declared[] =
	"{\"text\": {\"type\": \"string\", \"defaultValue\": \"\", \"minLength\": 2, \"maxLength\": 4},"
	" \"number\": {\"type\": \"int\", \"defaultValue\": 1, \"minValue\": -2, \"maxValue\": 9},"
	" \"flag\": {\"type\": \"Bool\", \"defaultValue\": true},"
	" \"list\": {\"type\": \"array\", \"defaultValue\": [], \"maxLength\": 2},"
	" \"choice\": {\"type\": \"int\", \"defaultValue\": 1, \"allowedValues\": [1, 2]},"
	" \"odd\": {\"type\": \"float\", \"defaultValue\": 1},"
	" \"none\": {\"type\": \"string\", \"nullable\": true},"
	" \"key\": {\"type\": \"secureString\", \"defaultValue\": \"\"},"
	" \"keys\": {\"type\": \"SecureObject\", \"defaultValue\": {}}}";

struct state {
	json_t *declared;
	struct secure secure;
	struct parameters p;
};

static void begin(struct state *s)
{
	*s = (struct state){.declared = json_loads(declared, 0, NULL)};
	assert_non_null(s->declared);
	s->p = (struct parameters){.declared = s->declared, .values = json_object(), .secure = &s->secure};
}

static void end(struct state *s)
{
	json_decref(s->declared);
	json_decref(s->p.values);
	secure_free(&s->secure);
}

static void check_words(void **state)
{
	static const struct {
		const char *given, *value; /* NULL: a fault */
	} rows[] = {
		{"text=ab", "\"ab\""},
		{"text=a=b", "\"a=b\""},
		{"text=a", NULL},
		{"text=abcde", NULL},
		{"text=\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", "\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\""}, /* four letters */
		{"text=\xff\xfe", NULL},
		{"number=-2", "-2"},
		{"number=-3", NULL},
		{"number=9", "9"},
		{"number=10", NULL},
		{"number=1.0", NULL},
		{"number=1 2", NULL},
		{"number=", NULL},
		{"number=99999999999999999999", NULL},
		{"flag=false", "false"},
		{"flag=False", NULL},
		{"flag=1", NULL},
		{"list=[\"a\", 2]", "[\"a\",2]"},
		{"list=[1,2,3]", NULL},
		{"list=a", NULL},
		{"choice=2", "2"},
		{"choice=3", NULL},
		{"odd=1", NULL},
		{"none=x", "\"x\""},
		{"key=longenough", NULL},
		{"keys={\"a\": \"longenough\"}", NULL},
		{"Text=ab", NULL},
		{"=x", NULL},
		{"text", NULL},
		{"", NULL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct state s;
		begin(&s);
		parameters_set(&s.p, FROM_WORD, rows[i].given);
		char *got = json_dumps(json_object_iter_value(json_object_iter(s.p.values)), JSON_COMPACT);
		char wanted[200];
		snprintf(wanted, sizeof(wanted), "{\"value\":%s}", rows[i].value ? rows[i].value : "");
		if (rows[i].value)
			assert_string_equal(got, wanted);
		else
			assert_null(got);
		assert_int_equal(s.p.faults, rows[i].value ? 0 : 1);
		free(got);
		end(&s);
	}
}

static void check_a_name_that_is_too_long(void **state)
{
	char given[LIMIT_DEPLOY_NAME + 10];
	struct state s;
	(void)state;
	begin(&s);
	memset(given, 'x', sizeof(given));
	strcpy(given + LIMIT_DEPLOY_NAME, "=a");
	parameters_set(&s.p, FROM_WORD, given);
	assert_int_equal(s.p.faults, 1);
	end(&s);
}

static void check_missing(void **state)
{
	struct state s;
	(void)state;
	begin(&s);
	parameters_check(&s.p);
	assert_int_equal(s.p.faults, 0);
	json_object_del(json_object_get(s.declared, "number"), "defaultValue");
	parameters_check(&s.p);
	assert_int_equal(s.p.faults, 1);
	parameters_set(&s.p, FROM_WORD, "number=3");
	parameters_check(&s.p);
	assert_int_equal(s.p.faults, 1);
	end(&s);
}

/* ---- secure values ---- */

static void check_scrubbed(const char *secret, const char *text, const char *wanted)
{
	struct state s;
	begin(&s);
	setenv("CAGE_TEST_KEY", secret, 1);
	parameters_set(&s.p, FROM_VARIABLE, "key=CAGE_TEST_KEY");
	assert_int_equal(s.p.faults, 0);
	assert_true(s.p.has_secure);
	json_t *answer = json_pack("{s:[s,i,{s:s}]}", "a", text, 1, "b", text);
	assert_true(secure_scrub(&s.secure, answer));
	assert_string_equal(json_string_value(json_array_get(json_object_get(answer, "a"), 0)), wanted);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(answer, "a"), 2), "b")),
			    wanted);
	json_decref(answer);
	end(&s);
}

static void check_secure(void **state)
{
	(void)state;
	check_scrubbed("12345678", "12345678", "(secure)");
	check_scrubbed("12345678", "x12345678y1234567812345678", "x(secure)y(secure)(secure)");
	check_scrubbed("12345678", "1234567", "1234567");
	check_scrubbed("aaaaaaaa", "aaaaaaaaaaaaaaaaaaa", "(secure)(secure)aaa");
	check_scrubbed("say \"it\" now", "in JSON: say \\\"it\\\" now", "(secure)");
	check_scrubbed("a&b<c>d'e", "in .NET: a\\u0026b\\u003Cc\\u003ed\\u0027e", "(secure)");
	check_scrubbed("a&b<c>d'e", "twice: a\\\\u0026b\\\\u003Cc>d'e", "(secure)");
	check_scrubbed("\xf0\x9f\x98\x80\xf0\x9f\x98\x80", "x\\ud83d\\ude00\\uD83D\\uDE00", "(secure)");
	check_scrubbed("12345678", "a\\nb \\u0031\\u00", "a\\nb \\u0031\\u00");
	check_scrubbed("12345678", "1234567\\", "1234567\\");
	check_scrubbed("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "\\u00e9\\u00e9\\u00E9\\u00e9", "(secure)");
	check_scrubbed("-----BEGIN-----\nMIIabcdefg\n", "line MIIabcdefg alone", "line (secure) alone");
	check_scrubbed("12345678", "", "");
}

static void check_secure_objects(void **state)
{
	struct state s;
	(void)state;
	begin(&s);
	setenv("CAGE_TEST_KEY", "{\"user\": \"me\", \"deep\": [{\"key\": \"longenough\"}]}", 1);
	parameters_set(&s.p, FROM_VARIABLE, "keys=CAGE_TEST_KEY");
	assert_int_equal(s.p.faults, 0);
	json_t *answer = json_string("me: longenough");
	assert_true(secure_scrub(&s.secure, answer));
	assert_string_equal(json_string_value(answer), "me: (secure)");
	json_decref(answer);
	setenv("CAGE_TEST_KEY", "1234567", 1);
	parameters_set(&s.p, FROM_VARIABLE, "key=CAGE_TEST_KEY");
	assert_int_equal(s.p.faults, 1);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_words),          cmocka_unit_test(check_a_name_that_is_too_long),
		cmocka_unit_test(check_missing),        cmocka_unit_test(check_secure),
		cmocka_unit_test(check_secure_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
