/* The program or socket behind the external inspector: one for each worker and policy, there for as long as the policy is
 * in use. What fails is made anew after a pause; until then the inspector blocks. */
#ifndef CAGE_PROXY_EXTERNAL_H
#define CAGE_PROXY_EXTERNAL_H

#include "core/net/loop.h"
#include "inspectors/external.h"

struct external_link;

/* Starts or connects at once. conf lives until external_link_close(). NULL: no memory. */
struct external_link *external_link_new(struct loop *l, const struct external_conf *conf);

/* What the inspector talks to; lives until the end of the pass in which the link is closed. */
struct external *external_link_talk(struct external_link *k);

/* Ends it: no request uses it any more. May be called while it hands out an answer. */
void external_link_close(struct external_link **k);

#endif
