/* The master: opens sockets, compiles policies, starts the log writer and the worker, and starts them again when they die. */
#ifndef CAGE_DNS_MASTER_H
#define CAGE_DNS_MASTER_H

#include "dns/options.h"

/* Runs until a signal says stop; the exit code of the program. */
int dns_run(const struct options *options);

/* --check: loads the policy and says what is wrong with it; the exit code. */
int dns_check(const struct options *options);

#endif
