/* Changes of who may use the proxy, made one after the other:
 *
 *	CHANGE_WAITS -> CHANGE_CHECKS -> CHANGE_PRINTS -> CHANGE_RELOADS -> CHANGE_SETTLES -> CHANGE_DONE
 *	                                                      |                                    ^
 *	                                                      +-> CHANGE_RESTORES -----------------+
 *
 *	WAITS     for those before it
 *	CHECKS    cage-proxy --check reads a policy that came
 *	PRINTS    cage-proxy --print-env tells the placeholders of its secrets
 *	RELOADS   it is in its place, and the proxy was told to look
 *	RESTORES  the proxy did not take it, or can't say that it did, or the gateway's own policy that came with it shuts it: what was
 *	          there before is in its place again, judged by that policy, and the proxy was told
 *	SETTLES   until all workers have it
 *
 * A sandbox that leaves, and a reload that the operator asked for, begin with RELOADS. Whoever waits for one may be gone: one that has
 * begun, and that of a sandbox which leaves, is made all the same; a PUT that waits still is dropped, for it will be asked again. */
#ifndef CAGE_GATEWAY_CHANGE_H
#define CAGE_GATEWAY_CHANGE_H

#include <jansson.h>

#include "orchestrator/gateway/gateway.h"

enum change_kind { CHANGE_PUT, CHANGE_DELETE, CHANGE_RELOAD };

enum change_state {
	CHANGE_WAITS,
	CHANGE_CHECKS,
	CHANGE_PRINTS,
	CHANGE_RELOADS,
	CHANGE_RESTORES,
	CHANGE_SETTLES,
	CHANGE_DONE,
	CHANGE_STATES
};

/* One that can't be begun, or is refused, is done at once. */
static inline bool change_may_follow(enum change_state from, enum change_state to)
{
	static const unsigned next[CHANGE_STATES] = {
		[CHANGE_WAITS] = 1u << CHANGE_CHECKS | 1u << CHANGE_PRINTS | 1u << CHANGE_RELOADS | 1u << CHANGE_DONE,
		[CHANGE_CHECKS] = 1u << CHANGE_PRINTS | 1u << CHANGE_DONE,
		[CHANGE_PRINTS] = 1u << CHANGE_RELOADS | 1u << CHANGE_DONE,
		[CHANGE_RELOADS] = 1u << CHANGE_RESTORES | 1u << CHANGE_SETTLES | 1u << CHANGE_DONE,
		[CHANGE_RESTORES] = 1u << CHANGE_DONE,
		[CHANGE_SETTLES] = 1u << CHANGE_DONE,
		[CHANGE_DONE] = 0,
	};
	return next[from] & 1u << to;
}

struct change {
	struct change *next;
	struct gateway *gateway;
	enum change_kind kind;
	enum change_state state;
	char id[LIMIT_SANDBOX + 1], owner[LIMIT_SANDBOX + 1];
	char *token, *policy; /* owned; policy NULL: that of --policy */
	bool is_new;          /* it was not there before */
	bool brings_own;   /* it brought another policy of the gateway's own: what lay aside was not judged by that */
	bool is_again;     /* the one before could not read that policy */
	uint64_t until_us; /* of the state */
	/* what came of it */
	int status;         /* of HTTP */
	const char *detail; /* static */
	struct words errors;
	json_t *env;          /* owned: placeholders by their names */
	char log[LOG_CURSOR]; /* where its lines begin: the end of the log before it was in its place */
	/* told when it is done; NULL: nobody waits */
	void (*done)(void *arg, const struct change *c);
	void *arg;
};

struct change *change_new(struct gateway *g, enum change_kind kind, struct slice id);
void change_free(struct change *c);

/* From now on it is the queue's. False: there are too many. */
bool change_ask(struct change *c);

/* Who waited for it is gone. */
void change_forget(struct change *c);

/* The proxy has read its sandboxes again; what it says of that (core/proc/master.h). Whom it has refused is no matter to others. */
void change_reloaded(struct gateway *g, struct slice line);

/* At the start: told when the proxy answers. */
bool changes_open(struct gateway *g);
void changes_close(struct gateway *g);

#endif
