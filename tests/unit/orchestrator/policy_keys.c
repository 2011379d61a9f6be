/* Keys of images that come into the text of a policy. */
#include "orchestrator/service/policy_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#define DIGITS                                                             \
	"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE00Sx+jwiqcXrK60eLnqVNhaBUNC+" \
	"miBuveDNjkYo/xlTRc+tiwQCa7/uDlq05hOsf754bDmZRTav+vV1fK3DaA=="
#define KEY "-----BEGIN PUBLIC KEY-----\n" DIGITS "\n-----END PUBLIC KEY-----\n"
#define WRITTEN "\"-----BEGIN PUBLIC KEY-----\\n" DIGITS "\\n-----END PUBLIC KEY-----\\n\""

static char dir[] = "/tmp/cage-keys-XXXXXX", policy[64], key[64];

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	snprintf(key, sizeof(key), "%s/k.pub", dir);
	FILE *f = fopen(key, "w");
	return f && fputs(KEY, f) >= 0 && fclose(f) == 0 ? 0 : -1;
}

static int clear(void **state)
{
	(void)state;
	return unlink(key) == 0 && rmdir(dir) == 0 ? 0 : -1;
}

/* wrong: the place and the begin of the one error; NULL: none. */
static void expect(const char *text, const char *want, const char *wrong)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	char at[600] = "";
	char *out = policy_with_keys(text, policy, errs);
	if (errs->n > 0)
		snprintf(at, sizeof(at), "%u:%u: %s", errs->list[0].line, errs->list[0].column, errs->list[0].text);
	assert_int_equal(errs->n, wrong ? 1 : 0);
	if (wrong)
		assert_memory_equal(at, wrong, strlen(wrong));
	if (want)
		assert_string_equal(out, want);
	else
		assert_null(out);
	free(out);
	free(errs);
}

static void test_names_become_keys(void **state)
{
	static const char *const forms[] = {"k.pub", "\"k.pub\"", "'k.pub'", "./k.pub"};
	char text[400], want[800];
	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		snprintf(text, sizeof(text),
			 "# \xc3\xa4\nimages:\n - {a: \"\xc3\xa4\", key: %s, b: c}\n - key: %s # k.pub\nx: y", forms[i],
			 forms[i]);
		snprintf(want, sizeof(want),
			 "# \xc3\xa4\nimages:\n - {a: \"\xc3\xa4\", key: " WRITTEN ", b: c}\n - key: " WRITTEN
			 " # k.pub\nx: y");
		expect(text, want, NULL);
	}
}

static void test_others_stay(void **state)
{
	static const char *const texts[] = {"",
					    "a: b\n",
					    "images: []\n",
					    "images: {key: k.pub}\n",
					    "images: [key]\n",
					    "images: [{key: [k.pub]}]\n",
					    "images:\n- key: " WRITTEN "\n",
					    "not: [yaml"};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], texts[i], NULL);
}

static void test_wrong_ones(void **state)
{
	(void)state;
	expect("images:\n- key: none.pub\n", NULL, "2:8: images[0].key: can't use \"none.pub\": ");
	expect("images:\n- key: k.pub\n- key: /\n", NULL,
	       "3:8: images[1].key: can't use \"/\": it is not a regular file");
	expect("images:\n- key: >-\n    k.pub\n", NULL, "2:8: images[0].key: expected the name of a file in one line");
	expect("images:\n- key: \"k\\x2epub\"\n", NULL, "2:8: images[0].key: expected the name of a file in one line");
	expect("images:\n- key: ''\n", NULL, "2:8: images[0].key: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_become_keys),
		cmocka_unit_test(test_others_stay),
		cmocka_unit_test(test_wrong_ones),
	};
	return cmocka_run_group_tests(tests, make, clear);
}
