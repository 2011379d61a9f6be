/* All that decides which file a name leads to. */
#ifndef CAGE_ORCHESTRATOR_OWN_TRACE_H
#define CAGE_ORCHESTRATOR_OWN_TRACE_H

#include <stdbool.h>

#include "orchestrator/words.h"

/* Adds each link that the name leads over, and then where it ends, all of them absolute and without a link before their last
 * part. What is not there counts as a plain name. False with a message: too many links, or no memory. */
bool own_trace(const char *path, struct words *out);

#endif
