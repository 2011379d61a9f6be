/* cage run: a command in its room, from the first socket to the summary. */
#ifndef CAGE_ORCHESTRATOR_RUN_H
#define CAGE_ORCHESTRATOR_RUN_H

#include "orchestrator/options.h"

/* argv[0] is "run". The exit code. */
int cmd_run(int argc, char **argv);

/* The same with options that somebody else has made. */
int run_command(const struct run_options *options);

/* cage env. */
int cmd_env(int argc, char **argv);

#endif
