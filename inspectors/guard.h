/* The guard: real values of secrets must not leave, and their placeholders only where the policy puts them. It is no
 * inspector of the table and has no section: what it finds blocks under every policy, in observe mode too. */
#ifndef CAGE_INSPECTORS_GUARD_H
#define CAGE_INSPECTORS_GUARD_H

#include "inspectors/inspector.h"
#include "inspectors/known/known.h"

/* Whose findings they are; its name is all that it has. */
extern const struct inspector guard;

struct chain_run;

/* Something known stands in a text of the request, as `bytes`. */
void guard_found(struct chain_run *r, const struct known_item *item, struct slice bytes, const struct spot *spot);

/* All of the body was searched. */
void guard_end_body(struct chain_run *r);

#endif
