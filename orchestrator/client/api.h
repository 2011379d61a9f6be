/* What commands ask of the service. Whatever it does not do is said here, as the service said it. */
#ifndef CAGE_CLIENT_API_H
#define CAGE_CLIENT_API_H

#include <jansson.h>

#include "orchestrator/client/client.h"

/* The path of a request, and its query. */
struct target {
	char bytes[LIMIT_CLIENT_TARGET];
	struct text text;
	bool has_query;
};

/* "/api/v1/sandboxes" and, where there is an id, "/ID"; where there is a rest, "/REST". */
void target_sandbox(struct target *t, const char *id, const char *rest);
void target_begin(struct target *t, const char *path);

/* A file's path, of which slashes stay what they are. */
void target_file(struct target *t, const char *path);

/* NAME=VALUE of the query. value NULL: nothing is added. */
void target_query(struct target *t, const char *name, const char *value);

/* A request without a body. */
struct http_request api_request(const char *method, const struct target *t);

/* Is it a success? Its body is to be read. False: it was said what went wrong. */
bool api_open(struct client *c, const struct http_request *r) MUST_CHECK;

/* The same, and the object that the answer is; NULL: it was said. Counted once. */
json_t *api_json(struct client *c, const struct http_request *r) MUST_CHECK;

/* The same for what has a body of JSON. */
json_t *api_post(struct client *c, const struct target *t, const json_t *body, const char *key,
		 unsigned answer_ms) MUST_CHECK;

/* The same for what makes something that has an id, with an idempotency key of its own. */
json_t *api_make(struct client *c, const struct target *t, const json_t *body) MUST_CHECK;

/* All of the answer, for api_json() and the like; NULL: it was said. Freed with free(). */
char *api_read_all(struct client *c, size_t *len) MUST_CHECK;

/* An answer that is no success: what the service says of it. */
void problem_say(struct client *c);

/* ---- json.c ---- */

/* "" where there is none. */
const char *json_text(const json_t *object, const char *key);

/* One line on stdout, with all beyond ASCII escaped. False with a message. */
bool json_print(const json_t *value);

#endif
