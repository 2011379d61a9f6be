/* What the service knows of workflows and their steps. Each call is one transaction but for those that say otherwise. */
#ifndef CAGE_SERVICE_STORE_WORKFLOW_H
#define CAGE_SERVICE_STORE_WORKFLOW_H

#include "orchestrator/service/store.h"
#include "orchestrator/service/workflow_state.h"

struct step_row {
	size_t n; /* which one of its workflow */
	char id[STORE_ID];
	enum workflow_state state;
	char reason[64];
	char *message;          /* NULL: none */
	char sandbox[STORE_ID]; /* "": not yet */
	int64_t started_us, ended_us;
	json_t *spec;      /* as it was asked for: needs, artifacts, inputs; and sandbox, when it is added */
	json_t *artifacts; /* list of {path, size, sha256}; NULL: none yet */
};

struct workflow_row {
	int64_t seq;
	char id[STORE_ID];
	char *name; /* "": none */
	json_t *labels;
	enum workflow_state state;
	char reason[64];
	int64_t created_us, ended_us;
	char cancelling[64]; /* why; "": it is not cancelled */
	bool deleting;
	struct step_row *steps; /* NULL in lists */
	size_t n_steps;
};

void workflow_row_free(struct workflow_row *r);

/* All of it, all states being the first. Within a transaction. */
enum store_result store_workflow_add(struct store *s, const struct workflow_row *r) MUST_CHECK;

enum store_result store_workflow_get(struct store *s, const char *id, struct workflow_row *out) MUST_CHECK;

/* What was asked for as the sandbox of a step that is waiting: a new object. */
enum store_result store_step_body(struct store *s, const char *workflow, size_t n, json_t **out) MUST_CHECK;

/* The only ways from a state to another, each with its change. store_step_put: within a transaction. */
enum store_result store_workflow_enter(struct store *s, const struct workflow_row *r) MUST_CHECK;
enum store_result store_step_enter(struct store *s, const char *workflow, const struct step_row *r) MUST_CHECK;
enum store_result store_step_put(struct store *s, const char *workflow, const struct step_row *r) MUST_CHECK;

/* It is to end, and to be removed then. reason: that of the first who asked is kept. */
enum store_result store_workflow_cancel(struct store *s, const char *id, const char *reason,
					bool is_deleted) MUST_CHECK;

/* The newest first, without their steps. Called for each; it may not call the store. */
typedef void store_each_workflow(void *arg, const struct workflow_row *r);
enum store_result store_workflow_list(struct store *s, const struct store_filter *f, store_each_workflow *each,
				      void *arg) MUST_CHECK;

/* Those that are not at their end, the oldest first; those that can be removed. */
enum store_result store_workflow_open(struct store *s, store_each_workflow *each, void *arg) MUST_CHECK;
enum store_result store_workflow_due(struct store *s, int64_t ended_before_us, store_each_workflow *each,
				     void *arg) MUST_CHECK;

/* Nothing is left of it but that its idempotency key was used. */
enum store_result store_workflow_remove(struct store *s, const char *id) MUST_CHECK;

/* The id of a step's history. */
#define STEP_HISTORY (2 * STORE_ID)
void step_history_id(const char *workflow, const char *step, char out[STEP_HISTORY]);

#endif
