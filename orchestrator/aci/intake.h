/* Calls of the intake of a gateway (orchestrator/gateway): each within a time, and again where nobody has answered, since all of them come
 * to the same when they are made twice.
 *
 *	INTAKE_SENDS <-> INTAKE_RESTS -> INTAKE_DONE */
#ifndef CAGE_ACI_INTAKE_H
#define CAGE_ACI_INTAKE_H

#include <jansson.h>
#include <stdint.h>

#include "orchestrator/azure/attempt.h"

struct intake {
	struct web *web;
	const char *url, *ca_file; /* ca_file NULL: those of the system */
	const char *token;
	const char *credential; /* of the sandbox, which is told to it; NULL: of none */
};

enum intake_state { INTAKE_NONE, INTAKE_SENDS, INTAKE_RESTS, INTAKE_DONE };

struct intake_call {
	enum intake_state state;
	struct attempt attempt;
	/* of INTAKE_DONE; its status, and what came, are those of the exchange */
	char why[400]; /* of a call that is not good: in words, printable */
};

/* path: below the address of the intake. body is taken over. It is made up to `most` times. */
void intake_begin(const struct intake *in, struct intake_call *c, const char *method, const char *path, json_t *body,
		  unsigned most);

/* Text of an answer, as far as it may be shown: ARM_LEFT_OUT in the place of one that has what it was sent. */
const char *intake_shown(const struct intake *in, const char *text);

/* Goes on with it, after web_wait(). */
void intake_look(const struct intake *in, struct intake_call *c);

/* For who has nothing else to do: waits until it is done. */
void intake_await(const struct intake *in, struct intake_call *c);
void intake_free(const struct intake *in, struct intake_call *c);

static inline bool intake_is_good(const struct intake_call *c)
{
	return c->state == INTAKE_DONE && c->attempt.exchange.status >= 200 && c->attempt.exchange.status < 300;
}

/* What came, as JSON; NULL: it is none. To be freed. */
json_t *intake_answer(const struct intake_call *c);

#endif
