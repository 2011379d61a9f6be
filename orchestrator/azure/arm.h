/* Calls of Azure's management API (ARM), and of others that are asked in the same way: each with a token, within a time, and again where that is what it takes.
 *
 *	ARM_TOKEN -> ARM_SENDS -> ARM_DONE
 *	    ^           |
 *	    +- ARM_RESTS
 *
 * What is asked again: no answer, 408, 429, 5xx, and a resource that is "still transitioning"; after what Retry-After says, or else
 * ever longer with some chance in it, so that many do not come back at the same moment. A call that is not to be repeated is done
 * when nobody knows whether it was obeyed: who made it has to look. */
#ifndef CAGE_AZURE_ARM_H
#define CAGE_AZURE_ARM_H

#include <jansson.h>
#include <stdint.h>

#include "orchestrator/azure/attempt.h"
#include "orchestrator/azure/hidden.h"
#include "orchestrator/azure/token.h"

struct arm {
	const struct azure_options *options;
	struct web web;
	struct token token;
	struct hidden secrets; /* that were sent: nothing that is shown of an answer may have them */
	unsigned patience_ms;  /* of a call, whatever it waits for; 0: LIMIT_ARM_TIME_MS, of its tries */
	bool is_quiet;         /* who asks says itself that something is asked for again */
};

#define ARM_LEFT_OUT "(left out: it holds a secret)"

enum arm_state { ARM_NONE, ARM_TOKEN, ARM_SENDS, ARM_RESTS, ARM_DONE };

enum arm_repeat {
	ARM_REPEATS, /* whatever was obeyed before, once more comes to the same */
	ARM_ONCE     /* only if it was surely not obeyed */
};

struct arm_call {
	enum arm_state state;
	enum arm_repeat repeat;
	bool has_lost_token; /* a 401 was answered with another token */
	struct attempt attempt;
	/* of ARM_DONE */
	long status; /* 0: nobody knows whether it was obeyed, or it could not be asked; message says why */
	json_t *answer;
	char code[100], message[400]; /* of an error, "" if there is none; printable */
};

/* False with a message. */
bool arm_open(struct arm *a, const struct azure_options *o);
void arm_close(struct arm *a);

/* Where: below the endpoint if it begins with a slash, else a whole address, which must lie there too. body is taken over. */
void arm_begin(struct arm *a, struct arm_call *c, const char *method, const char *where, json_t *body,
	       enum arm_repeat repeat);

/* The same with bytes that are JSON already, in this coding (NULL: none); they are copied. */
void arm_begin_bytes(struct arm *a, struct arm_call *c, const char *method, const char *where, struct slice body,
		     const char *coding, enum arm_repeat repeat);

/* Goes on with a call, after web_wait(). */
void arm_look(struct arm *a, struct arm_call *c);

/* Until when nothing happens by itself, in ms, at most so long. */
int arm_pause(const struct arm_call *c, int most_ms);

/* For who has nothing else to do: waits until it is done. */
void arm_await(struct arm *a, struct arm_call *c);

void arm_free(struct arm *a, struct arm_call *c);

static inline bool arm_is_good(const struct arm_call *c)
{
	return c->state == ARM_DONE && c->status >= 200 && c->status < 300;
}

/* "PATH?api-version=VERSION" of a resource in the resource group, "Microsoft.ContainerInstance/containerGroups/NAME". */
void arm_path(const struct arm *a, const char *resource, const char *version, char out[LIMIT_ARM_URL]);

/* Text of an answer, cut to its room, with '?' for all that is not printable ASCII; NULL: none. */
void arm_put_text(char *out, size_t room, const char *text);

/* Puts ARM_LEFT_OUT in the place of each text, name or number of an answer that holds a token or a secret that was sent. Errors are without them already. */
void arm_clean(const struct arm *a, struct arm_call *c);

#endif
