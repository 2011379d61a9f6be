/* A policy that comes with a request is read and obeyed with the rights of the service: nothing in it may name what is this
 * machine's. Policies of the configured directory may. */
#ifndef CAGE_SERVICE_FOREIGN_H
#define CAGE_SERVICE_FOREIGN_H

#include "core/policy/node.h"

/* Adds an error for each file to be read and each program to be run that the policy names. One that is no YAML is left to the
 * loader, which says so. */
void foreign_check(struct slice text, struct policy_errors *errs);

/* Adds an error if it has more patterns of its own than LIMIT_GATEWAY_PATTERNS, or longer ones: who compiles it does so for others too. */
void foreign_check_patterns(struct slice text, struct policy_errors *errs);

/* Adds an error if it lets in images. */
void foreign_check_images(struct slice text, struct policy_errors *errs);

#endif
