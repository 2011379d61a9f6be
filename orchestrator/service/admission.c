/* What is refused is said on stderr too: an operator has to learn of images that somebody tries to run. */
#include "orchestrator/service/admission.h"

#include <stdio.h>

#include "core/base/say.h"
#include "orchestrator/image/admit.h"
#include "orchestrator/service/check.h"

bool admission_check(const struct config *c, const char *policy, const char *image, json_t *errors)
{
	struct image_verdict verdict;
	char detail[IMAGE_WHY + 64];
	if (image_admit_file(policy, slice_str(image), c->signatures, &verdict))
		return true;
	snprintf(detail, sizeof(detail), "%s: %s", image_reason_code(verdict.reason), verdict.why);
	say("image %.*s refused: %s", LIMIT_IMAGE_REFERENCE, image, detail);
	errors_add(errors, "/image", detail);
	return false;
}
