/* The results of tool calls, as the API gives them back. */
#ifndef CAGE_SERVICE_TOOL_RESULTS_H
#define CAGE_SERVICE_TOOL_RESULTS_H

#include "orchestrator/service/tools.h"

struct tool_output {
	struct job_end end;
	struct slice out, err;
	size_t written; /* bytes of a file */
	bool truncated, timed_out;
};

/* A new object; NULL with a sentence in error. */
json_t *tool_result(enum tool t, const struct tool_output *o, char *error, size_t room);

/* The entries of a list that cage-inside has made: a new list. */
json_t *tool_entries(struct slice words);

/* As `key`, or as `key`_base64 where it is no text. */
void tool_put_bytes(json_t *result, const char *key, struct slice bytes);

/* Bytes of base64, malloced; NULL: it is none. */
char *base64_decode(struct slice text, size_t *n);

#endif
