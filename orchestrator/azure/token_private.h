/* Between the files of a token: the ways to it, and where they lead. */
#ifndef CAGE_AZURE_TOKEN_PRIVATE_H
#define CAGE_AZURE_TOKEN_PRIVATE_H

#include "orchestrator/azure/token.h"

/* ---- token.c ---- */

/* NULL: it is not set, or empty. */
const char *token_env(const char *name);

/* From what was answered: the text of that key, and until when it is good if nothing is said of that. False: there is none in it. */
bool token_take(struct token *t, struct slice bytes, const char *key, uint64_t seconds);

/* To TOKEN_FAILED, and to TOKEN_REFUSED. */
void token_fail(struct token *t, const char *why);
void token_refuse(struct token *t, const char *why);

/* ---- token_request.c ---- */

void token_ask_identity(struct token *t, struct web *w);
void token_ask_authority(struct token *t, struct web *w, bool by_secret);

/* ---- token_az.c ---- */

void token_ask_az(struct token *t);

#endif
