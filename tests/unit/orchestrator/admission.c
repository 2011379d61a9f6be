/* What a create with an image is answered with. */
#include "orchestrator/service/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The errors, or NULL when it is admitted. */
static json_t *check(const char *policy, const char *image)
{
	char path[] = "/tmp/cage-admission-XXXXXX";
	struct config *c = calloc(1, sizeof(*c));
	json_t *errors = json_array();
	int fd = mkstemp(path);
	assert_true(c && fd >= 0);
	assert_int_equal(write(fd, policy, strlen(policy)), strlen(policy));
	close(fd);
	bool ok = admission_check(c, path, image, errors);
	unlink(path);
	free(c);
	assert_int_equal(ok, json_array_size(errors) == 0);
	if (!ok)
		return errors;
	json_decref(errors);
	return NULL;
}

static void expect(const char *policy, const char *image, const char *detail)
{
	json_t *errors = check(policy, image);
	const json_t *first = json_array_get(errors, 0);
	assert_int_equal(json_array_size(errors), 1);
	assert_string_equal(json_string_value(json_object_get(first, "pointer")), "/image");
	assert_string_equal(json_string_value(json_object_get(first, "detail")), detail);
	json_decref(errors);
}

static void test_answers(void **state)
{
	static const char policy[] = "version: 1\nname: x\nimages: [{registry: r.test, repository: a}]\n";
	(void)state;
	assert_null(check(policy, "r.test/a@sha256:" HEX));
	expect(policy, "r.test/b@sha256:" HEX,
	       "image.not_allowed: no entry of the policy's images has this registry and repository");
	expect("version: 1\nname: x\n", "r.test/a@sha256:" HEX,
	       "image.not_allowed: the policy allows no image: it has no images");
	expect(policy, "r.test/a:latest",
	       "image.unpinned: the image has no digest: what a tag names can change; expected "
	       "REGISTRY/REPOSITORY@sha256:DIGEST");
	expect("version: 2\nname: x\n", "r.test/a@sha256:" HEX,
	       "image.policy: the policy can't be loaded: 1:10: version: expected 1, got \"2\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
