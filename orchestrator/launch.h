/* Starting the programs of a run: cage-proxy and cage-dns, which say on stderr when they are ready, and cage-gate. */
#ifndef CAGE_ORCHESTRATOR_LAUNCH_H
#define CAGE_ORCHESTRATOR_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/limits.h"

#define LAUNCH_FIRST_FD 3 /* descriptors that a program is given have numbers from here on, in their order */

enum helper_state { HELPER_ABSENT, HELPER_STARTING, HELPER_READY, HELPER_ENDED };

struct helper {
	const char *name; /* "cage-proxy" */
	enum helper_state state;
	pid_t pid;
	int said;                     /* the pipe of its stderr; -1: closed */
	int reloads;                  /* a pipe with a byte for each reload; -1: closed */
	int status;                   /* of waitpid(), once it has ended */
	char line[LIMIT_HELPER_LINE]; /* what it is saying */
	size_t len;
};

struct launch {
	const char *name;                /* found beside our own executable, or an absolute path */
	char *const *argv, *const *envp; /* argv[0] is the name again */
	const int *fds;                  /* -1 in none of them */
	size_t n_fds;
	void (*in_child)(const void *arg); /* before exec; NULL: nothing */
	const void *arg;
	int death_signal; /* what it gets when we die */
};

/* The path of a program beside our own executable; false: too long, or /proc is not there. */
bool launch_path(const char *name, char *out, size_t room);

/* Forks and executes. -1 with a message. */
pid_t launch(const struct launch *l);

/* Starts a helper in a session of its own, with its stderr on a pipe. reloads is the helper's from then on, or is closed. False
 * with a message. */
bool helper_start(struct helper *h, const struct launch *l, int reloads);

enum helper_heard { HEARD_SOME, HEARD_NOTHING, HEARD_END };

/* Reads once what it says; each line but the one that it is ready goes to heard. HEARD_NOTHING: not now; HEARD_END: never more,
 * which is so when all of its children are gone too. */
enum helper_heard helper_listen(struct helper *h, void (*heard)(void *arg, const char *line), void *arg);

/* What became of its next reload: 'y' or 'n'; 0: nothing is known, or will never be. */
char helper_reloaded(struct helper *h);

/* It was waited for. */
void helper_ended(struct helper *h, int status);

/* Asks it to end and waits for that, within a bound; then it is killed. */
void helper_stop(struct helper *h);

/* "was killed by signal 9", "ended with 1". */
void status_describe(int status, char *out, size_t room);

#endif
