/* Commands that a sandbox may not run: regular expressions. They are compiled once for a sandbox, when the first command comes. */
#ifndef CAGE_SERVICE_BLOCKED_H
#define CAGE_SERVICE_BLOCKED_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/slice.h"

struct blocked;

/* Is it one? False with why, in room bytes. */
bool pattern_is_good(struct slice pattern, char *why, size_t room);

/* NULL: no memory, or one of them is none. */
struct blocked *blocked_new(const json_t *patterns);
void blocked_free(struct blocked **b);

/* Does one of them match, or does it take too long to tell? NULL: it does. */
bool blocked_has(struct blocked *b, struct slice command);

#endif
