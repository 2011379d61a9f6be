/* What a whole request of the intake asks for (docs/azure.md has the API). It is read here, and done elsewhere (api.c). */
#ifndef CAGE_GATEWAY_ASK_H
#define CAGE_GATEWAY_ASK_H

#include <jansson.h>

#include "core/base/limits.h"
#include "orchestrator/gateway/request.h"

enum ask_kind { ASK_HEALTH, ASK_LIST, ASK_LOG, ASK_PUT, ASK_DELETE };

struct ask {
	enum ask_kind kind;
	char id[LIMIT_SANDBOX + 1];    /* of a sandbox: ASK_LOG, ASK_PUT, ASK_DELETE */
	char owner[LIMIT_SANDBOX + 1]; /* "": nobody's; ASK_LIST: all of them */
	/* ASK_PUT: */
	json_t *body;               /* owned */
	const char *token, *policy; /* in it; policy NULL: none */
	/* ASK_LOG: */
	struct slice instance; /* where it was: in the head; empty: at the beginning */
	uint64_t at;
};

/* What is wrong with it; status 0: nothing. */
struct ask_fault {
	int status; /* of HTTP */
	const char *why;
};

/* is_known: it has shown the token. What was read has to be freed in any case. */
struct ask_fault ask_read(const struct request *r, bool is_known, struct ask *out);
void ask_free(struct ask *a);

/* An id names a directory, and one that begins with a dot is none that the proxy looks at. Owners are named as they are. */
bool box_id_is_good(struct slice id);

#endif
