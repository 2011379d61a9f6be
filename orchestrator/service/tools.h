/* The tools: what they take, what is forbidden, and what they give back. */
#ifndef CAGE_SERVICE_TOOLS_H
#define CAGE_SERVICE_TOOLS_H

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

/* Why this sandbox may not make the call: a reason of the decision log; NULL: it may. */
const char *tool_denied(const json_t *spec, const char *name, const json_t *arguments);

/* What the decision log says of the call. */
void tool_detail(enum tool t, const json_t *arguments, char out[LIMIT_SERVE_DETAIL + 1]);

/* The entries of a list that cage-inside has made: a new list. */
json_t *tool_entries(struct slice words);

/* "text", or "base64" where it is none. */
void tool_put_bytes(json_t *result, const char *key, struct slice bytes);

/* Bytes of base64, malloced; NULL: it is none. */
char *base64_decode(struct slice text, size_t *n);

#define TOOL_PATH_ESCAPES "the path leads out of the workspace; paths are relative to /workspace"

/* An errno of cage-inside as an answer. */
void answer_errno(struct request *r, int error);

/* Does it lead out of the workspace? */
bool errno_is_escape(int error);

#endif
