/* The check of a line's middle before it goes into the file. A worker speaks with the network and may be taken over;
 * what it hands to the writer must not be able to forge the chain or break the line. */
#ifndef CAGE_AUDIT_BODY_H
#define CAGE_AUDIT_BODY_H

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/text.h"

/* What the writer wants to know of a line's middle. */
struct audit_body {
	struct slice event; /* "request" and so on, without quotes */
	struct slice who;   /* the members between `event` and `conn` (sandbox, policy, policy_sha, gen), without commas
			     * at the ends; it may be empty */
	uint64_t conn, txn; /* 0: absent */
};

/* The `who` of the last body that was good. Most are followed by one with the same, which need not be read again. Zero is
 * good. */
struct audit_who {
	size_t len, next; /* next: the key that may follow */
	char text[LIMIT_LOG_WHO];
};

/* True when body is what audit_event_write makes: `"event":` first, known keys only, each once and in order, values
 * that are whole, ids of sixteen hex digits, all bytes in 0x20..0x7e. */
bool audit_body_check(struct slice body, struct audit_who *last, struct audit_body *out);

/* Is it an event of a connection or exchange? The others are about the program itself, and no worker's to tell. */
bool audit_body_is_of_worker(const struct audit_body *b);

/* `,"conn":"00000000000000ff"`: sixteen hex digits, as in a refusal, since JSON readers round large numbers. key comes
 * with its comma and colon; 0 is left out. */
void audit_put_id(struct text *t, struct slice key, uint64_t id);

#endif
