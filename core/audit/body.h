/* The check of a line's middle before it goes into the file. A worker speaks with the network and may be taken over;
 * what it hands to the writer must not be able to forge the chain or break the line. */
#ifndef CAGE_AUDIT_BODY_H
#define CAGE_AUDIT_BODY_H

#include "core/base/slice.h"
#include "core/base/text.h"

/* True when body is what audit_event_write makes: `"event":` first, known keys only, each once and in order, values
 * that are whole, all bytes in 0x20..0x7e. *who gets the members between `event` and `conn` (sandbox, policy,
 * policy_sha, gen), without commas at the ends; it may be empty. */
bool audit_body_check(struct slice body, struct slice *who);

/* `,"conn":"00000000000000ff"`: sixteen hex digits, as in a refusal, since JSON readers round large numbers. key comes
 * with its comma and colon; 0 is left out. */
void audit_put_id(struct text *t, struct slice key, uint64_t id);

#endif
