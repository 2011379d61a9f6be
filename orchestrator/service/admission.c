/* What is refused is said on stderr too: an operator has to learn of images that somebody tries to run. */
#include "orchestrator/service/admission.h"

#include <stdio.h>
#include <sys/wait.h>

#include "core/base/say.h"
#include "orchestrator/service/check.h"

/* ---- there ---- */

enum image_reason admission_check(const struct config *c, const char *policy, const char *image,
				  char detail[ADMISSION_DETAIL])
{
	struct image_verdict verdict;
	image_admit_file(policy, slice_str(image), c->signatures, &verdict);
	snprintf(detail, ADMISSION_DETAIL, "%s: %s", image_reason_code(verdict.reason), verdict.why);
	return verdict.reason;
}

/* words: the policy's path, a line's end, the image. The exit code is one more than the reason: 0 is left for what is admitted. */
static int check_in_child(const char *words, const void *config)
{
	char policy[CONFIG_PATH], detail[ADMISSION_DETAIL];
	struct slice rest = slice_str(words), path = slice_cut(&rest, '\n');
	snprintf(policy, sizeof(policy), "%.*s", SLICE_FMT(path));
	enum image_reason reason = admission_check(config, policy, words + path.len + 1, detail);
	if (reason == IMAGE_ADMITTED)
		return 0;
	fputs(detail, stdout);
	fflush(stdout);
	return 1 + (int)reason;
}

/* ---- here ---- */

bool admission_begin(const struct config *c, struct children *children, const char *policy, const char *image,
		     child_done *done, void *arg)
{
	char words[CONFIG_PATH + LIMIT_IMAGE_REFERENCE + 2];
	snprintf(words, sizeof(words), "%s\n%s", policy, image);
	const struct child_spec spec = {.function = check_in_child, .text = words, .with = c, .done = done, .arg = arg};
	return child_run(children, &spec);
}

struct admission admission_told(int status, struct slice said, const char *image, json_t *errors)
{
	char detail[ADMISSION_DETAIL];
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 127;
	if (code == 0)
		return (struct admission){0, NULL};
	if (code > IMAGE_ADMITTED || said.len == 0)
		return (struct admission){503, NULL};
	snprintf(detail, sizeof(detail), "%.*s", SLICE_FMT(said));
	say("image %.*s refused: %s", LIMIT_IMAGE_REFERENCE, image, detail);
	errors_add(errors, "/image", detail);
	return (struct admission){422, image_reason_code((enum image_reason)(code - 1))};
}
