/* http://cage.internal/: what an agent can read about the cage it is in, and the CA that its programs must trust. The name
 * is ours on every path: it is never looked up and never dialled, and needs no rule. */
#ifndef CAGE_PROXY_PAGE_H
#define CAGE_PROXY_PAGE_H

#include "core/base/reason.h"
#include "core/http/url.h"

struct txn;

bool page_is_host(const struct host *host);

/* REASON_NONE: it is served here, and nowhere else. */
enum reason page_decide(struct txn *t);

/* Answers a request for it. */
void page_serve(struct txn *t);

#endif
