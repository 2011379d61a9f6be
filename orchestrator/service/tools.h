/* The tools: what they take, and what is forbidden. */
#ifndef CAGE_SERVICE_TOOLS_H
#define CAGE_SERVICE_TOOLS_H

#include "orchestrator/service/blocked.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/http.h"
#include "orchestrator/service/link.h"

enum tool { TOOL_SHELL, TOOL_READ, TOOL_WRITE, TOOL_LIST, TOOL_HTTP, TOOL_NONE };

/* TOOL_NONE: there is none of that name. */
enum tool tool_find(const char *name);

/* Each with the schema of its arguments: a new list. */
json_t *tools_json(void);

/* All that is wrong with the arguments. */
void tool_check(enum tool t, const json_t *arguments, json_t *errors);

/* Is it among those of the sandbox? */
bool tool_is_allowed(const json_t *spec, const char *name);

/* Why the sandbox with those blocked commands may not make the call with these arguments: a reason of the decision log; NULL: it
 * may. */
const char *tool_denied(struct blocked *blocked, const json_t *arguments);
const char *path_denied(const char *path);

/* What is answered to one that is denied. */
struct problem tool_denial(enum tool t, const char *reason);

/* What the decision log says of the call. The arguments may be bad. */
void tool_detail(enum tool t, const json_t *arguments, char out[LIMIT_SERVE_DETAIL + 1]);

#define TOOL_PATH_ESCAPES "the path leads out of the workspace; paths are relative to /workspace"

/* An errno of cage-inside as an answer. */
struct problem errno_problem(int error);

/* Does it lead out of the workspace? */
bool errno_is_escape(int error);

#endif
