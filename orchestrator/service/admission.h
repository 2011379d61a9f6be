/* The image that a create asks for, for backends that take images. Asked when the sandbox's policy is written and was found good,
 * and again by who makes the container, right before (orchestrator/pod/admit.c). In a process of its own: signatures are read and
 * checked. */
#ifndef CAGE_SERVICE_ADMISSION_H
#define CAGE_SERVICE_ADMISSION_H

#include "orchestrator/image/admit.h"
#include "orchestrator/service/child.h"
#include "orchestrator/service/config.h"

#define ADMISSION_DETAIL (IMAGE_WHY + 64)

/* May the sandbox with the policy in that file be made of that image? detail: "REASON: sentence". */
enum image_reason admission_check(const struct config *c, const char *policy, const char *image,
				  char detail[ADMISSION_DETAIL]);

/* The same in a process of its own; false: not now. */
bool admission_begin(const struct config *c, struct children *children, const char *policy, const char *image,
		     child_done *done, void *arg);

struct admission {
	int status;         /* to be answered; 0: it is admitted */
	const char *reason; /* "image.unsigned"; NULL: it could not be looked at */
};

/* What came of it, from what `done` was told. A refusal is an error at /image, and said to the operator. */
struct admission admission_told(int status, struct slice said, const char *image, json_t *errors);

#endif
