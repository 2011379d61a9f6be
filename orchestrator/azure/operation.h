/* Long-running operations of ARM: something is asked for, and then looked at until it has come to an end. Where the answer says where
 * to look (Azure-AsyncOperation, else Location), there; else at the resource itself, by its provisioningState.
 *
 *	OPERATION_ASKS -> OPERATION_RESTS <-> OPERATION_POLLS -> OPERATION_DONE */
#ifndef CAGE_AZURE_OPERATION_H
#define CAGE_AZURE_OPERATION_H

#include "orchestrator/azure/arm.h"

enum operation_state { OPERATION_NONE, OPERATION_ASKS, OPERATION_RESTS, OPERATION_POLLS, OPERATION_DONE };

enum operation_end {
	OPERATION_GOOD,
	OPERATION_BAD,    /* it was refused, or has failed: code and message say why */
	OPERATION_UNKNOWN /* nobody knows whether it was asked for, or it has not ended in time */
};

struct operation {
	enum operation_state state;
	struct arm_call call;
	enum { POLL_STATUS, POLL_LOCATION, POLL_RESOURCE } poll;
	char where[LIMIT_ARM_URL]; /* to be looked at */
	uint64_t at_us, until_us;
	bool wants_absence; /* DELETE: a 404 is its end */
	unsigned absent;    /* times that a resource which was made was not there yet */
	/* of OPERATION_DONE */
	enum operation_end end;
	char code[100], message[400];
};

/* path: with its api-version. body is taken over. */
void operation_begin(struct arm *a, struct operation *o, const char *method, const char *path, json_t *body,
		     enum arm_repeat repeat);
void operation_look(struct arm *a, struct operation *o);
int operation_pause(const struct operation *o, int most_ms);
void operation_await(struct arm *a, struct operation *o);
void operation_free(struct arm *a, struct operation *o);

#endif
