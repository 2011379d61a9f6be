/* What commands with few options say of a wrong one. */
#ifndef CAGE_ORCHESTRATOR_MISUSE_H
#define CAGE_ORCHESTRATOR_MISUSE_H

#include "core/base/say.h"

/* The exit code for it. */
static inline int wrong_usage(const char *command, const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("cage %s --help lists all options", command);
	return 2;
}

#endif
