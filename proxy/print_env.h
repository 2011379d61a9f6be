/* --print-env: what a launcher puts into the environment of a sandbox, so that the programs there find a placeholder where
 * they look for a credential. */
#ifndef CAGE_PROXY_PRINT_ENV_H
#define CAGE_PROXY_PRINT_ENV_H

#include "proxy/options.h"

/* A line NAME=PLACEHOLDER for each secret of the policy; the exit code. */
int print_env(const struct options *options);

#endif
