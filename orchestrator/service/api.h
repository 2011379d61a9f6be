/* What is done for each path of the API. */
#ifndef CAGE_SERVICE_API_H
#define CAGE_SERVICE_API_H

#include "orchestrator/service/http.h"

/* At the head: which handler it will have. */
void api_route(struct request *r);

/* Is its body a file? */
bool api_takes_file(const struct request *r);

/* At the end of its body. */
void api_handle(struct request *r);

/* Is a path of the request one of these? If so the request has the id and the file of it. {id} and {path} stand for them; {path} is
 * the last part. */
bool route_fits(const char *pattern, struct slice path, struct request *r);

/* Each answers the request, at once or later. */
typedef void handler(struct request *r);
handler api_health, api_openapi, api_create, api_list, api_show, api_delete, api_stop, api_policy, api_logs, api_output,
	api_get_file, api_put_file, api_execute, api_verify, api_tools, api_usage, api_workflow_create,
	api_workflow_list, api_workflow_show, api_workflow_delete, api_workflow_cancel, api_workflow_artifact;

/* A sandbox as the API shows it: a new object. */
json_t *sandbox_json(struct service *s, const struct row *row);

/* ---- pages ---- */

#define PAGE_LABEL (LIMIT_SERVE_LABEL * 2 + 3)

/* What a list is asked for; label has the texts of it. NULL, or what is wrong. The state is not looked at. */
const char *page_read(struct request *r, char label[PAGE_LABEL], struct store_filter *f);

/* With a page of items, each with its `seq`, of which one more than asked for was read, to know whether there is a next one; or with
 * why they could not be read. Takes the items over. */
void answer_page(struct request *r, enum store_result result, json_t *items, size_t limit);

/* ---- idempotency ---- */

/* A key that is under way. It is its request's, until work that goes on without the client takes it over. */
struct key;

/* False: it was answered, from before or since the key can't be used. */
bool idempotency_begin(struct request *r);

/* Keeps an answer for the key; NULL: there is none, and nothing to do. Within a transaction, or by itself. */
enum store_result idempotency_keep(const struct key *k, int status, const json_t *value, const char *location);

/* What is begun now may be done when nobody is left who could say so: until its answer is kept, the key is answered with that. Nothing
 * is to be begun where this can't be stored. */
enum store_result idempotency_mark(const struct key *k, const char *instance);

/* It was not begun. */
void idempotency_unmark(const struct key *k);
void key_drop(struct key **k);

/* The sandbox of the path, with a room that stands; NULL: it was answered. */
struct sandbox *api_ready_sandbox(struct request *r);

#endif
