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

static enum image_reason check(const char *policy, const char *image, char detail[ADMISSION_DETAIL])
{
	char path[] = "/tmp/cage-admission-XXXXXX";
	struct config *c = calloc(1, sizeof(*c));
	int fd = mkstemp(path);
	assert_true(c && fd >= 0);
	assert_int_equal(write(fd, policy, strlen(policy)), strlen(policy));
	close(fd);
	enum image_reason reason = admission_check(c, path, image, detail);
	unlink(path);
	free(c);
	return reason;
}

/* As a process of its own would have ended with it. */
static void expect(const char *policy, const char *image, const char *expected)
{
	char detail[ADMISSION_DETAIL];
	json_t *errors = json_array();
	const enum image_reason reason = check(policy, image, detail);
	struct admission a = admission_told((1 + (int)reason) << 8, slice_str(detail), image, errors);
	const json_t *first = json_array_get(errors, 0);
	assert_int_equal(a.status, 422);
	assert_string_equal(a.reason, image_reason_code(reason));
	assert_int_equal(json_array_size(errors), 1);
	assert_string_equal(json_string_value(json_object_get(first, "pointer")), "/image");
	assert_string_equal(json_string_value(json_object_get(first, "detail")), expected);
	json_decref(errors);
}

/* One that was killed, was not found, or said nothing has let nothing in. */
static void test_no_answer(void **state)
{
	json_t *errors = json_array();
	(void)state;
	assert_int_equal(admission_told(0, SLICE(""), "x", errors).status, 0);
	assert_int_equal(admission_told(9, SLICE(""), "x", errors).status, 503);
	assert_int_equal(admission_told(127 << 8, SLICE("why"), "x", errors).status, 503);
	assert_int_equal(admission_told((1 + IMAGE_ADMITTED) << 8, SLICE("why"), "x", errors).status, 503);
	assert_int_equal(admission_told(1 << 8, SLICE(""), "x", errors).status, 503);
	assert_int_equal(json_array_size(errors), 0);
	json_decref(errors);
}

static void test_answers(void **state)
{
	static const char policy[] = "version: 1\nname: x\nimages: [{registry: r.test, repository: a}]\n";
	(void)state;
	char detail[ADMISSION_DETAIL];
	assert_int_equal(check(policy, "r.test/a@sha256:" HEX, detail), IMAGE_ADMITTED);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_no_answer)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
