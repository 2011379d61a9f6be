/* The master: opens listeners, compiles policies, starts the signer, the log writer and the workers, and starts them
 * again when they die. */
#ifndef CAGE_PROXY_MASTER_H
#define CAGE_PROXY_MASTER_H

#include "proxy/options.h"

/* Runs until a signal says stop; the exit code of the program. */
int proxy_run(const struct options *options);

/* --check: loads the policy and says what is wrong with it; the exit code. */
int proxy_check(const struct options *options);

#endif
