/* What was decided in a run, in a few lines. */
#ifndef CAGE_ORCHESTRATOR_SUMMARY_H
#define CAGE_ORCHESTRATOR_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"

struct summary_row {
	char what[LIMIT_SUMMARY_TEXT]; /* "method.not_allowed DELETE api.test/v1" */
	uint64_t n;
};

enum verdict { VERDICT_ALLOWED, VERDICT_BLOCKED, VERDICT_FAILED, VERDICTS };

struct summary {
	uint64_t exchanges[VERDICTS];                /* connections and requests */
	uint64_t names[VERDICTS];                    /* questions to cage-dns */
	struct summary_row rows[LIMIT_SUMMARY_ROWS]; /* what was blocked or failed, in the order of its first time */
	size_t n_rows;
	uint64_t others;   /* for which there was no row */
	uint64_t observed; /* what was let through since the policy, or the rule, only observes */
};

/* Adds the decisions of a log from byte `from` on. Lines that can't be read count as failed. False with a message: it is gone, or
 * was cut short. */
bool summary_read(struct summary *s, const char *path, uint64_t from);

/* On stderr. log: where it is kept; NULL: nowhere. */
void summary_print(const struct summary *s, const char *log);

#endif
