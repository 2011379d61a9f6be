/* What a create asks for: its shape, and what becomes of it with its profile, the defaults and the maximum. The outcome is the
 * `spec` of a sandbox: the same keys with nothing left open, and without `files`, `policy` and `network`. */
#ifndef CAGE_SERVICE_CREATE_H
#define CAGE_SERVICE_CREATE_H

#include "orchestrator/service/check.h"
#include "orchestrator/service/config.h"

extern const char *const tool_names[];
#define TOOLS 5

/* The shape alone, of a request or a profile. */
void create_check(const json_t *body, json_t *errors);

/* The shape of labels. */
void create_check_labels(const struct place *p, const json_t *value);

/* The request with what its profile says where it says nothing: a new object, or NULL with errors. */
json_t *create_with_profile(const struct config *c, const json_t *body, json_t *errors);

/* The spec of what that made; NULL with errors. */
json_t *create_spec(const struct config *c, const json_t *full, json_t *errors);

/* Of a file of a workspace: relative, without "." and "..", without an empty part. */
bool file_path_is_good(struct slice s);

bool label_value_is_good(struct slice s);

/* NAME=VALUE; both are part of text. False: it is none. */
bool label_parse(struct slice text, struct slice *name, struct slice *value);

#endif
