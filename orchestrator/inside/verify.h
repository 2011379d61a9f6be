/* The probes of cage verify in a sandbox that runs. */
#ifndef CAGE_INSIDE_VERIFY_H
#define CAGE_INSIDE_VERIFY_H

#include <stdbool.h>

/* The exit code: 0 there was no surprise. */
int verify_sandbox(void);

/* The same in a container that shares its network with others, before anything else is run in it. Only surprises are told, on
 * stderr. */
bool verify_group(void);

#endif
