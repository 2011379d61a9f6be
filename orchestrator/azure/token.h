/* A bearer token for one of Azure's services, and how it is come by. It is asked for when it is needed, kept until shortly before its
 * end, and never logged. */
#ifndef CAGE_AZURE_TOKEN_H
#define CAGE_AZURE_TOKEN_H

#include <stdint.h>

#include "orchestrator/azure/azure.h"
#include "orchestrator/azure/web.h"

enum token_state {
	TOKEN_NONE,
	TOKEN_ASKED, /* by an exchange that runs */
	TOKEN_HELD,
	TOKEN_FAILED, /* why says so; asked again, it tries again */
	TOKEN_REFUSED /* likewise, and it would come to the same: nothing was set for it, or the service knows us and says no */
};

struct token {
	enum token_state state;
	const struct azure_options *options;
	const char *resource; /* "https://management.azure.com" */
	struct exchange exchange;
	char *text;        /* owned */
	char *last;        /* owned: the one before, which answers that are under way may still quote; NULL: none */
	uint64_t until_us; /* monotonic: it is not used after that */
	char why[300];
};

/* To TOKEN_ASKED, TOKEN_HELD or TOKEN_FAILED: asks for one if there is none that is still good. */
void token_want(struct token *t, struct web *w);

/* What has come of an exchange. */
void token_look(struct token *t, struct web *w);

/* The service does not take it any more. */
void token_drop(struct token *t);
void token_free(struct token *t, struct web *w);

#endif
