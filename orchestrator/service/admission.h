/* The image that a create asks for, for backends that take images. Asked when the sandbox's policy is written and was found good,
 * and again right before the container is made (orchestrator/image/admit.h). */
#ifndef CAGE_SERVICE_ADMISSION_H
#define CAGE_SERVICE_ADMISSION_H

#include "orchestrator/service/config.h"

/* May the sandbox with the policy in that file be made of that image? False with an error at /image, "REASON: sentence", which is
 * also said to the operator. */
bool admission_check(const struct config *c, const char *policy, const char *image, json_t *errors);

#endif
