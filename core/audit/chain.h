/* The hash chain: makes lines from records, and reads a line back. */
#ifndef CAGE_AUDIT_CHAIN_H
#define CAGE_AUDIT_CHAIN_H

#include "core/audit/writer.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/text.h"

#define AUDIT_LINE_MAX (LIMIT_LOG_RECORD + 512) /* a record, and what the writer puts around it */

/* A SHA-256 that is set up once. */
struct audit_hasher {
	void *ctx, *md;
};

bool audit_hasher_init(struct audit_hasher *h);
void audit_hasher_free(struct audit_hasher *h);

/* The chain of a log without lines. */
struct audit_chain audit_chain_start(void);

bool audit_chain_eq(const struct audit_chain *a, const struct audit_chain *b);

/* Appends the line of this body, with its newline, and moves the chain on; *body becomes its copy in the line. false:
 * the hash could not be made, or there is no room. */
bool audit_chain_add(struct audit_chain *c, struct audit_hasher *h, struct text *out, uint64_t ts_us,
		     struct slice *body) MUST_CHECK;

/* Reads a line without its newline and sets *after to where the chain goes on. false: this is not a line of a log, or
 * not as it was written. */
bool audit_chain_read(struct audit_hasher *h, struct slice line, struct audit_chain *after) MUST_CHECK;

/* Can this be the first part of a line? */
bool audit_chain_is_torn_line(struct slice part);

#endif
