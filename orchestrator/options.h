/* The command lines of cage run and cage env. */
#ifndef CAGE_ORCHESTRATOR_OPTIONS_H
#define CAGE_ORCHESTRATOR_OPTIONS_H

#include "orchestrator/words.h"

enum options_action { OPTIONS_RUN, OPTIONS_EXIT_OK, OPTIONS_EXIT_USAGE };

struct run_options {
	const char *policy;    /* a file; NULL: the agent's, or the default one */
	const char *agent;     /* NULL: none */
	const char *ca_dir;    /* NULL: the default place */
	const char *log;       /* NULL: it ends with the run */
	const char *log_max;   /* as both helpers take it; NULL: any */
	const char *workspace; /* a directory of which the agent gets a view; NULL: none */
	const char *mode;      /* as the gate takes it */
	const char *sandbox;
	bool quiet, apply;
	struct words room;    /* what the gate is given as it is: --bind X, --limit X, ... */
	const char *control;  /* fd:N, the launcher; NULL: none */
	struct words proxy;   /* what cage-proxy is given as it is: --socks X, --tools X, --out X */
	struct words env;     /* NAME, of ours, or NAME=VALUE */
	struct words secrets; /* ID=env:NAME */
	char **command;
};

/* argv[0] is the subcommand. Prints help or what is wrong itself. */
enum options_action run_options_parse(int argc, char **argv, struct run_options *out);

/* The same without a CMD: only options, and nothing else. */
enum options_action run_options_only(int argc, char **argv, struct run_options *out);

/* An option that the gate checks and takes as it is. */
enum options_action run_options_to_room(struct run_options *o, const char *option, const char *value);

/* Its exit code; OPTIONS_GO_ON (core/base/option_table.h) of OPTIONS_RUN. */
int run_options_code(enum options_action action);

void run_options_free(struct run_options *o);

#endif
