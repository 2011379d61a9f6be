/* Workflows that are not at their end: what follows from what has ended.
 *
 * All that counts is stored: a step gets its sandbox in the transaction that stores that, and its end when its artifacts are on the
 * disk. What is under way beside that is begun again by the next service, and comes to the same. */
#ifndef CAGE_SERVICE_WORKFLOW_H
#define CAGE_SERVICE_WORKFLOW_H

#include "orchestrator/service/service.h"
#include "orchestrator/service/store_workflow.h"

struct workflow;

/* Goes on with those that there were. False with a message. */
bool workflows_start(struct service *s);
void workflows_free(struct service *s);

/* One that was stored begins. False: no memory; it begins with the next service. */
bool workflow_add(struct service *s, const char *id);

/* May one more begin? */
bool workflows_have_room(const struct service *s);

/* It is to end, or is taken note of that it shall be removed at its end. */
enum store_result workflow_cancel(struct service *s, const char *id, const char *reason, bool is_deleted);

/* A sandbox has come to its end. */
void workflow_sandbox_ended(struct service *s, const struct row *row);

/* Is it of a step that has not taken note of its end? Then what it left has to stay. */
bool workflow_holds(const struct service *s, const struct row *row);

/* What could not be stored, and what is due. */
void workflows_tick(struct service *s);

/* ---- workflow_remove.c: those that are over ---- */

void workflow_removals_look(struct service *s);
void workflow_removals_free(struct service *s);

/* ---- workflow_step.c: between the files of it ---- */

enum step_phase {
	STEP_RESTS,   /* its stored state says all */
	STEP_CREATES, /* its sandbox is being made */
	STEP_STORES   /* its artifacts are being taken */
};

struct step {
	struct workflow *workflow;
	struct step_row *row; /* of the workflow's */
	enum step_phase phase;
	struct creation *creation;
	struct step_row next; /* as it is stored with its sandbox */
	uint64_t again_us;    /* monotonic: before that nothing is tried again */
	unsigned tries;       /* of what is under way, that have failed for no fault of its own */
};

struct workflow {
	struct workflow *next;
	struct service *service;
	struct workflow_row row;
	struct step *steps; /* as many as the row has */
};

/* The only way of a step to another state, but for its begin, which is stored with its sandbox. False: it could not be stored, and the next look tries again. */
bool step_enter(struct step *t, enum workflow_state state, const char *reason, const char *message);

/* Is nothing of it under way, and nothing to be waited for? */
bool step_may_be_tried(const struct step *t);

/* Makes its sandbox; all that it needs has succeeded. */
void step_begin(struct step *t);

/* Its sandbox may have ended. */
void step_look(struct step *t);

/* The workflow was cancelled. */
void step_cancel(struct step *t);

/* Nobody will hear of what is under way. */
void step_drop(struct step *t);

/* Looks at all workflows at the end of this pass. */
void workflows_look_soon(struct service *s);

#endif
