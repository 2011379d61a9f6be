/* cage bench aci: how fast groups come. Some are made, one after the other or several at a time, each with a command that prints a line;
 * when the line is there the group is removed. Times are told for each phase:
 *
 *	accepted  Azure has answered that it makes the group            by our clock
 *	pulling   the first image is being pulled                       by Azure's clock, as are the next three
 *	pulled    all images are there
 *	started   the agent's container runs
 *	line      the gate is closed, and the agent has written a line
 *	gone      from asking for its removal to its end                by our clock
 *
 * All but the last are counted from the moment that it was asked for. Groups have the tags of all others, with ".bench" behind the value of
 * --state: so a service does not take them for its own, and what a killed bench has left is removed by the next. */
#ifndef CAGE_ACI_BENCH_H
#define CAGE_ACI_BENCH_H

#include "orchestrator/aci/aci.h"

struct bench_options {
	uint64_t runs, parallel;
	bool json, yes;
	char **command; /* ends with NULL */
	size_t n_command;
};

enum bench_phase { PHASE_ACCEPTED, PHASE_PULLING, PHASE_PULLED, PHASE_STARTED, PHASE_LINE, PHASE_GONE, PHASES };

enum bench_state { BENCH_WAITS, BENCH_ASKS, BENCH_WATCHES, BENCH_REMOVES, BENCH_DONE };

/* One group. */
struct bench_run {
	enum bench_state state;
	char id[LIMIT_SANDBOX + 1];
	char path[LIMIT_ARM_URL];
	json_t *body; /* owned, until it is asked for */
	struct operation operation;
	struct arm_call call, log;
	uint64_t asked_us, removal_us, until_us, look_us; /* monotonic */
	unsigned absent, looks;  /* looks at a group that is not there yet, and at one that does not end */
	struct meter meter;      /* what is paid for; no metrics are asked for */
	uint64_t phases[PHASES]; /* microseconds */
	bool knows[PHASES];
	uint64_t billed_s;
	bool is_left;  /* it could not be removed */
	char why[200]; /* it has failed; "": it has not */
};

struct bench {
	const struct bench_options *options;
	struct aci_options own; /* with the tag of a bench */
	char tag[200];
	struct aci aci; /* to make bodies from, and for its connection */
	struct bench_run *runs;
	bool is_stopped; /* somebody wants its end */
};

/* argv[0] is "bench". An exit code. */
int aci_bench(const struct aci_options *o, int argc, char **argv);

/* bench_options.c: OPTIONS_GO_ON (core/base/option_table.h), or an exit code. */
int bench_options_parse(int argc, char **argv, struct bench_options *out);

/* Says what it takes, and asks on a terminal. False: it shall not be. */
bool bench_confirm(const struct bench *b, const struct instance_share *share);

/* bench_run.c */
void bench_begin(struct bench *b, struct bench_run *r);
void bench_look(struct bench *b, struct bench_run *r);
void bench_stop(struct bench *b, struct bench_run *r); /* it is removed as it is */
void bench_free(struct bench *b, struct bench_run *r);

/* bench_table.c: false: it could not be written. */
bool bench_print(const struct bench *b);

#endif
