/* Routes: which handler a method and a path have. */
#include "orchestrator/service/api.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/openapi.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/warm.h"

static const struct route {
	const char *method;
	const char *path; /* "{id}" is a sandbox or a workflow, "{path}" all that follows */
	handler *handle;
} routes[] = {
	{"GET", "/healthz", api_health},
	{"GET", "/openapi.yaml", api_openapi},
	{"POST", "/api/v1/sandboxes", api_create},
	{"GET", "/api/v1/sandboxes", api_list},
	{"GET", "/api/v1/sandboxes/{id}", api_show},
	{"DELETE", "/api/v1/sandboxes/{id}", api_delete},
	{"POST", "/api/v1/sandboxes/{id}/stop", api_stop},
	{"PUT", "/api/v1/sandboxes/{id}/policy", api_policy},
	{"GET", "/api/v1/sandboxes/{id}/logs", api_logs},
	{"GET", "/api/v1/sandboxes/{id}/output", api_output},
	{"GET", "/api/v1/sandboxes/{id}/files/{path}", api_get_file},
	{"PUT", "/api/v1/sandboxes/{id}/files/{path}", api_put_file},
	{"POST", "/api/v1/sandboxes/{id}/tools/execute", api_execute},
	{"POST", "/api/v1/sandboxes/{id}/verify", api_verify},
	{"POST", "/api/v1/workflows", api_workflow_create},
	{"GET", "/api/v1/workflows", api_workflow_list},
	{"GET", "/api/v1/workflows/{id}", api_workflow_show},
	{"DELETE", "/api/v1/workflows/{id}", api_workflow_delete},
	{"POST", "/api/v1/workflows/{id}/cancel", api_workflow_cancel},
	{"GET", "/api/v1/workflows/{id}/artifacts/{path}", api_workflow_artifact},
	{"GET", "/api/v1/tools", api_tools},
	{"GET", "/api/v1/usage", api_usage},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* ---- matching ---- */

/* False: it is too long, or there is a NUL in it. */
static bool decode(struct request *r, struct slice s, char *out, size_t room)
{
	const char *text = request_decode(r, s);
	return text && snprintf(out, room, "%s", text) < (int)room;
}

static bool take_part(struct slice want, struct slice have, struct request *r)
{
	char id[STORE_ID];
	if (!slice_eq(want, SLICE("{id}")))
		return slice_eq(want, have);
	if (!decode(r, have, id, sizeof(id)) || !sandbox_id_is_good(slice_str(id)))
		return false;
	memcpy(r->sandbox, id, sizeof(id));
	return true;
}

bool route_fits(const char *pattern, struct slice path, struct request *r)
{
	struct slice want = slice_str(pattern);
	r->sandbox[0] = r->path[0] = '\0';
	while (want.len > 0 && path.len > 0) {
		if (slice_eq(want, SLICE("{path}")))
			return decode(r, path, r->path, sizeof(r->path)) && r->path[0];
		if (!take_part(slice_cut(&want, '/'), slice_cut(&path, '/'), r))
			return false;
	}
	return want.len == 0 && path.len == 0;
}

static void no_such_method(struct request *r, struct slice path)
{
	char room[64];
	struct text allowed = text_in(room, sizeof(room) - 1);
	for (size_t i = 0; i < ROUTES; i++)
		if (route_fits(routes[i].path, path, r)) {
			text_put(&allowed, allowed.len > 0 ? SLICE(", ") : SLICE(""));
			text_put(&allowed, slice_str(routes[i].method));
		}
	room[allowed.len] = '\0';
	if (allowed.len == 0) {
		answer_problem(r, 404, "there is nothing of that name");
		return;
	}
	add_header(r, "Allow", room);
	answer_problem(r, 405, "only %s can be asked of it", room);
}

void api_route(struct request *r)
{
	r->query = r->head.target;
	const struct slice path = slice_cut(&r->query, '?');
	for (size_t i = 0; i < ROUTES && !r->route && r->head.form == TARGET_ORIGIN; i++)
		if (slice_eq(r->head.method, slice_str(routes[i].method)) && route_fits(routes[i].path, path, r))
			r->route = &routes[i];
}

bool api_takes_file(const struct request *r)
{
	return r->route && r->route->handle == api_put_file;
}

void api_handle(struct request *r)
{
	struct slice path = r->head.target;
	if (r->route)
		r->route->handle(r);
	else if (r->head.form != TARGET_ORIGIN)
		answer_problem(r, 400, "the address can't be read");
	else
		no_such_method(r, slice_cut(&path, '?'));
}

/* ---- bodies ---- */

struct slice request_body(struct request *r)
{
	size_t n = r->body ? evbuffer_get_length(r->body) : 0;
	return slice_of(n ? evbuffer_pullup(r->body, -1) : NULL, n);
}

static bool says_json(struct request *r)
{
	const char *type = request_field(r, "content-type");
	return !type || strncasecmp(type, "application/json", 16) == 0;
}

json_t *request_json(struct request *r)
{
	struct slice body = request_body(r);
	json_error_t e;
	if (!says_json(r)) {
		answer_problem(r, 415, "the body has to be application/json");
		return NULL;
	}
	json_t *value = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, &e);
	if (!value)
		answer_problem(r, 400, "the body is not JSON: line %d, column %d: %s", e.line, e.column, e.text);
	return value;
}

/* ---- the service itself ---- */

void api_health(struct request *r)
{
	const struct queue *q = &r->service->queue;
	answer_json(r, 200,
		    json_pack("{s:s, s:s, s:I, s:I, s:o}", "status", r->service->stopping ? "stopping" : "ok",
			      "version", CAGE_VERSION, "running", (json_int_t)q->n_placed, "queued",
			      (json_int_t)q->n_waiting, "warm", warm_json(r->service)));
}

void api_openapi(struct request *r)
{
	answer_text(r, "application/yaml", slice_of(openapi_bytes, openapi_length));
}

void api_usage(struct request *r)
{
	const char *by = query_value(r, "by"), *since = query_value(r, "since");
	int64_t seconds = 0;
	if (by && !label_name_is_good(slice_str(by))) {
		answer_problem(r, 400, "by: expected the name of a label");
		return;
	}
	if (since && !clock_parse(slice_str(since), &seconds)) {
		answer_problem(r, 400, "since: expected a time such as 2026-12-31T00:00:00Z");
		return;
	}
	json_t *items;
	enum store_result result = store_usage(r->service->store, by, seconds * 1000000, &items);
	if (result == STORE_OK)
		answer_json(r, 200, json_pack("{s:o}", "items", items));
	else
		answer_store(r, result);
}

struct sandbox *api_ready_sandbox(struct request *r)
{
	struct row row = {0};
	struct sandbox *b = sandbox_find(r->service, r->sandbox);
	if (b && b->phase == PHASE_READY && b->row.state == RUNNING)
		return b;
	enum store_result result = store_get(r->service->store, r->sandbox, &row);
	if (result != STORE_OK)
		answer_store(r, result);
	else if (row.state == RUNNING)
		answer_problem(r, 503, "it runs, and its keeper is not connected yet: try again");
	else
		answer_problem(r, 409, "it is %s, not running", state_name(row.state));
	row_free(&row);
	return NULL;
}
