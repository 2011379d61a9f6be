/* Tool calls that are made in a sandbox from outside (cage serve): each is told here before it is made, and stands in the same
 * log as the requests of that sandbox.
 *
 *	| length: 2 bytes | DECISION NUL REASON NUL TOOL NUL DETAIL |  ->  'y' or 'n'
 *
 * on a unix socket, in the byte order of the machine. 'y': the line is in the log's queue, and the log is being written; who hears
 * anything else makes no call. Whoever breaks this form is cut off. */
#ifndef CAGE_PROXY_TOOLS_H
#define CAGE_PROXY_TOOLS_H

#include "core/base/reason.h"
#include "core/audit/event.h"

struct tools;
struct worker;

/* What one message says; slices of it. */
struct tool_call {
	enum audit_decision decision; /* allow or block */
	enum reason reason;           /* none with allow */
	struct slice tool, detail;
};

/* False: not of that form. */
bool tool_call_parse(struct slice message, struct tool_call *out);

/* NULL: no memory. */
struct tools *tools_new(struct worker *w);
void tools_free(struct tools **t);

/* Takes a connection that was accepted. */
void tools_accept(struct tools *t, int fd);

#endif
