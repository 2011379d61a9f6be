/* The policy of a sandbox: made from its `network`, taken from the request, or from the policy directory; written to its
 * directory, and checked there. */
#ifndef CAGE_SERVICE_POLICIES_H
#define CAGE_SERVICE_POLICIES_H

#include "orchestrator/service/child.h"
#include "orchestrator/service/config.h"

/* The text of a request's policy; free() it. NULL with errors. */
char *policy_text(const struct config *c, const json_t *full, enum policy_kind *kind, json_t *errors);

/* May this text come with a request? False with errors: it names what is this machine's (foreign.h). */
bool policy_may_come(const char *text, json_t *errors);

/* The policy of a create itself, not that of its profile: which images there are is the operator's to say, who does so by a ceiling
 * or by policies of their own. False with errors. */
bool policy_may_let_in(const struct config *c, const json_t *body, json_t *errors);

/* Writes DIR/NAME, whole and on the disk. False with errno. */
bool policy_write(const char *dir, const char *name, const char *text);

/* What is known of a policy that was found good. */
struct policy_facts {
	char sha[65];    /* SHA-256 */
	json_t *sources; /* id of each secret to the variable that it is taken from; null: from a file */
};

void policy_facts_free(struct policy_facts *facts);

/* Loads it, and holds it to the ceiling; false with errors. */
bool policy_check(const struct config *c, const char *path, enum policy_kind kind, struct policy_facts *facts,
		  json_t *errors);

/* One of the policy directory, which may be long: in a process of its own it is copied to DIR/policy.yaml and checked there. False:
 * not now. */
bool policy_take(const struct config *c, struct children *children, const char *name, const char *dir, child_done *done,
		 void *arg);

/* What became of it: 0 with facts, or the status of an answer, with errors where the policy is wrong. */
int policy_taken(int status, struct slice said, struct policy_facts *facts, json_t *errors);

/* cage-proxy checks it too, with the values that are kept for those secrets. */
struct policy_trial {
	const char *path;
	const struct policy_facts *facts;
	const json_t *secrets; /* ids */
	bool may_lack;         /* an id that the policy does not have is no error */
	child_done *done;
	void *arg;
};

enum trial_start { TRIAL_BEGAN, TRIAL_SECRET, TRIAL_BUSY };

/* TRIAL_SECRET with errors. */
enum trial_start policy_try(const struct config *c, struct children *children, const struct policy_trial *t,
			    json_t *errors);

/* The list of errors in what `cage-proxy --check` said. */
void policy_read_errors(struct slice said, const char *path, json_t *errors);

/* verdict.c: what such a trial has come to, from what its `done` was told. */
struct verdict {
	int status;         /* to be answered; 0: the policy is good */
	const char *detail; /* a sentence */
};

struct verdict policy_verdict(int status, struct slice said, const char *path, json_t *errors);

/* The same of a trial that did not begin; status 0: it did. */
struct verdict trial_verdict(enum trial_start start);

#endif
