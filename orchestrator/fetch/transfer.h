/* One request, with libcurl. */
#ifndef CAGE_FETCH_TRANSFER_H
#define CAGE_FETCH_TRANSFER_H

#include "orchestrator/fetch/ask.h"
#include "orchestrator/fetch/reply.h"

/* NULL: there is an answer. Else a word for what went wrong: timeout, connect, tls, proxy, protocol; *message says more. */
const char *transfer_make(const struct ask *a, struct reply *r, const char **message);

#endif
