/* Between the files of keyvault.h:
 *
 *	keyvault.c		the master's: when to read, and what is made of it
 *	keyvault_reader.c	the reader: token, then value, one secret after the other
 *	keyvault_token.c	how a token is asked for
 *	keyvault_call.c		one HTTP exchange
 */
#ifndef CAGE_PROXY_KEYVAULT_PRIVATE_H
#define CAGE_PROXY_KEYVAULT_PRIVATE_H

#include "core/base/arena.h"
#include "core/net/resolver.h"
#include "proxy/keyvault.h"
#include "proxy/tls.h"

/* ---- from the reader to the master ---- */

enum keyvault_outcome {
	KEYVAULT_REFUSED, /* it will be the same until somebody changes something */
	KEYVAULT_AGAIN,   /* it may be better soon: no answer, too many requests, trouble of the service */
	KEYVAULT_READ
};

#define KEYVAULT_WHY 200

/* Followed by the value. */
struct keyvault_record {
	uint32_t index; /* of the secret in the policy */
	uint32_t outcome;
	uint32_t status;        /* 0: there was no answer */
	uint32_t wait_s;        /* what the service asks for; 0: nothing */
	uint32_t len;           /* of the value; 0 unless KEYVAULT_READ */
	char why[KEYVAULT_WHY]; /* text of ours, with a NUL */
};

/* ---- one exchange ---- */

struct caller {
	struct loop *loop;
	const struct policy *policy;
	SSL_CTX *tls;
	struct resolver *resolver; /* NULL: there are only pins */
	const struct addr_port *self;
	size_t n_self;
	char *room; /* LIMIT_KEYVAULT_ANSWER bytes */
};

struct call_request {
	struct target url;
	struct slice field, value; /* a header field; the value may be a secret */
	struct slice form;         /* ptr NULL: GET; else it is sent by POST */
};

struct call_answer {
	int status; /* 0: there was none, and why says what happened: "did not answer" */
	const char *why;
	bool is_lasting;   /* without a status: it won't be better by itself */
	uint32_t wait_s;   /* Retry-After */
	struct slice body; /* in the caller's room */
};

/* Returns when it is over, after LIMIT_KEYVAULT_CALL_MS at the latest. */
struct call_answer call(struct caller *c, const struct call_request *r);

/* ---- tokens ---- */

/* How a token for that resource is asked for here: of the identity of this machine, or with what a federated identity shows. NULL,
 * or what is wrong with the environment. All of it is in the arena. */
const char *identity_request(struct slice resource, struct arena *arena, struct call_request *out);

#endif
