/* Short-lived processes of the service: the check of a policy, a webhook, the removal of a tree. A bounded number at the same
 * time, each with a bound on its time and on what it says. */
#ifndef CAGE_SERVICE_CHILD_H
#define CAGE_SERVICE_CHILD_H

#include <event2/event.h>
#include <stdbool.h>

#include "core/base/slice.h"

struct children;

/* status: of waitpid(); said: what it wrote, cut at its bound. */
typedef void child_done(void *arg, int status, struct slice said);

struct child_spec {
	/* Either a program beside our own, ... */
	const char *program;
	char *const *argv, *const *envp; /* copied */
	struct slice input;              /* its stdin; copied */
	bool hears_errors;               /* stderr is kept too */
	/* ... or a function of ours, in a process of its own: its exit code is what it returns. */
	int (*function)(const char *text, const void *with);
	const char *text;    /* copied */
	const void *with;    /* has to outlive it */
	size_t most_said;    /* bytes; 0: LIMIT_SERVE_CHILD_OUT */
	unsigned most_ms;    /* 0: LIMIT_SERVE_CHILD_MS */
	unsigned most_cpu_s; /* of computing: ends by SIGXCPU; 0: any */
	child_done *done;
	void *arg;
};

/* Exit codes of one that did not come to do anything; no function of ours returns them. */
#define CHILD_UNPREPARED 126
#define CHILD_UNFOUND 127

/* Why a function that returns an errno has failed; NULL: it has not. */
const char *child_failure(int status);

struct children *children_new(struct event_base *base);
void children_free(struct children **c);

/* False: there are too many already, or no memory; done is not called. Else it is called later, from the loop, also of one that can't
 * be started. */
bool child_run(struct children *c, const struct child_spec *spec);

/* Nobody is interested any more. */
void child_forget(struct children *c, const void *arg);

#endif
