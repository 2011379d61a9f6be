/* The secrets of a run: cage-proxy gets their values, CMD gets placeholders. */
#ifndef CAGE_ORCHESTRATOR_SECRETS_H
#define CAGE_ORCHESTRATOR_SECRETS_H

#include "orchestrator/options.h"
#include "orchestrator/own_files.h"

/* Loads the policy, whose errors it prints. Adds NAME=VALUE for cage-proxy to *proxy: the variables that the policy names,
 * and no others of ours; and NAME=PLACEHOLDER for CMD to *room; and the files of both to *own. An exit code: 0, or 2 with a
 * message. */
int secrets_share(const struct run_options *o, const char *policy, const char *ca_dir, struct words *proxy,
		  struct words *room, struct own_files *own);

#endif
