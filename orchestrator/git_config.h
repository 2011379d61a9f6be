/* The text of a configuration of git, as git itself reads it. */
#ifndef CAGE_ORCHESTRATOR_GIT_CONFIG_H
#define CAGE_ORCHESTRATOR_GIT_CONFIG_H

#include <stdbool.h>

#include "core/base/slice.h"

struct git_setting {
	struct slice section; /* without its subsection; this and the key in the case of the text */
	struct slice key;
	struct slice value; /* without quotes and escapes, until the call ends; empty where there is none */
};

/* False: the rest is of no interest. */
typedef bool git_config_found(void *arg, const struct git_setting *s);

/* Tells of each setting. False: there are lines that git would not take, or a value that is too long; what could be understood
 * was told all the same. */
bool git_config_parse(struct slice text, git_config_found *found, void *arg);

#endif
