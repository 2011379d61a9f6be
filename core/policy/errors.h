/* The list of what is wrong with a policy, and how a wrong value is shown in it. */
#ifndef CAGE_POLICY_ERRORS_H
#define CAGE_POLICY_ERRORS_H

#include "core/policy/policy.h"

/* A place in a file; line and column from 1, 0 for the file as a whole. */
struct where {
	const char *file;
	unsigned line, column;
};

/* Text in double quotes, cut after LIMIT_POLICY_VALUE bytes, everything but printable ASCII as \xNN. */
struct quoted {
	char text[LIMIT_POLICY_VALUE * 4 + sizeof("\"...\"")];
};

struct quoted quote(struct slice s);

/* Adds one error; beyond the list it is only counted. */
void error_at(struct policy_errors *errs, struct where at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* By file, line and column; errors of one place stay in the order in which they were found. */
void errors_sort(struct policy_errors *errs);

#endif
