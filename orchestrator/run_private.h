/* What the files of cage run share.
 *
 *	RUN_SOCKETS -> RUN_HELPERS -> RUN_CMD -> RUN_ENDED
 *
 *	SOCKETS  the gate makes the room's sockets and hands them over
 *	HELPERS  cage-proxy and cage-dns start on them
 *	CMD      both are ready, the gate was told to go on
 *
 * run_enter() alone changes the state. */
#ifndef CAGE_ORCHESTRATOR_RUN_PRIVATE_H
#define CAGE_ORCHESTRATOR_RUN_PRIVATE_H

#include <stdint.h>

#include "orchestrator/control.h"
#include "orchestrator/launch.h"
#include "orchestrator/options.h"
#include "orchestrator/own_files.h"
#include "orchestrator/room_kind.h"
#include "orchestrator/rundir.h"
#include "orchestrator/sockets.h"
#include "orchestrator/streams.h"
#include "orchestrator/tty.h"
#include "orchestrator/workspace.h"

#define RUN_PATH 4200
#define ROOM_HOME "/home/agent"
#define RUN_PROXY_URL "http://127.0.0.1:8080" /* where the gate listens for it */

#define EXIT_FAILED 1
#define EXIT_WRONG 2
#define EXIT_UNLOCKED 78 /* as the gate has it */

enum run_state { RUN_SOCKETS, RUN_HELPERS, RUN_CMD, RUN_ENDED };

/* How the gate is made to end; run_end_gate() alone changes it. */
enum gate_end { GATE_GOES_ON, GATE_ASKED, GATE_KILLED };

/* What there is of CMD's work; run_mark() alone changes it.
 *
 *	WORK_NONE -> WORK_DONE -> WORK_GOES_ON */
enum run_work {
	WORK_NONE,   /* CMD was not let go */
	WORK_DONE,   /* it was: what it has left is all there is when the programs have ended */
	WORK_GOES_ON /* processes of it can't be ended: what they write is neither looked at nor removed */
};

struct run {
	const struct run_options *options;
	enum run_state state;
	enum run_work work;
	int code; /* of RUN_ENDED */
	struct rundir dir;
	char policy[RUN_PATH], ca_dir[RUN_PATH], log[RUN_PATH], dns_log[RUN_PATH];
	uint64_t log_from, dns_log_from; /* bytes that earlier runs have written */
	int lock;                        /* held while the CA may be made; -1: not */
	struct words proxy_env, dns_env, room_env;
	struct room_kind kind;
	struct workspace workspace;
	struct own_files own;
	struct tty tty;
	struct streams streams;
	struct room_sockets sockets;
	struct helper proxy, dns;
	pid_t gate; /* 0: not started, or waited for */
	enum gate_end gate_end;
	uint64_t gate_until_us; /* of GATE_ASKED: when it is killed */
	int handoff, signals;
	struct control control;
	struct handoff_usage usage; /* of CMD, when the gate has ended */
	uint64_t interrupted_us;    /* the last SIGINT; 0: none */
	bool asked_to_stop;         /* by SIGTSTP; CMD was asked in turn */
	char notes[LIMIT_NOTES];    /* what could not be said while CMD has the terminal */
	size_t n_notes;
};

void run_enter(struct run *r, enum run_state next);

/* It ends now, with that code. */
void run_end(struct run *r, int code);

void run_mark(struct run *r, enum run_work next);

/* On stderr, at once or when the terminal is ours again. */
void run_note(struct run *r, const char *line);

/* Those that had to wait. The terminal is ours. */
void run_tell_notes(struct run *r);

/* run_gate.c, run_start.c, run_helpers.c: each gives false after it has said why. */
bool run_start_gate(struct run *r);
bool run_prepare(struct run *r);
bool run_start_helpers(struct run *r);
bool run_let_go(struct run *r);

/* run_helpers.c: a reload is asked for; one of them may have told what became of it; one has ended, and so has not. */
void run_reload(struct run *r);
void run_take_reloaded(struct run *r, struct helper *h);
void run_miss_reloaded(struct run *r, struct helper *h);

/* run_end.c: asks the gate to end, with all in the room; the second call kills it. */
void run_end_gate(struct run *r);

/* Milliseconds until a gate that was asked is killed; -1: it was not asked. */
int run_gate_patience(const struct run *r);

/* Kills it if they are over. */
void run_look_at_gate(struct run *r);

/* Waits for one that was asked. */
void run_await_gate(struct run *r);

/* run_loop.c: until RUN_ENDED. */
void run_loop(struct run *r);

#endif
