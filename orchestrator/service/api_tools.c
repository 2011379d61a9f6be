/* Tool calls: their arguments, what they take along, and what comes of them. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/proc/sandbox_id.h"
#include "orchestrator/service/call.h"
#include "orchestrator/service/tool_results.h"

struct execution {
	struct call call; /* first */
	json_t *body;
	const json_t *arguments; /* in it */
	struct evbuffer *out, *err, *input;
	size_t most;    /* bytes of out, and of err */
	size_t written; /* bytes of a file */
	bool truncated;
	unsigned seconds;
};

static struct execution *of(struct call *c)
{
	return (struct execution *)c;
}

static void on_free(struct call *c)
{
	struct execution *x = of(c);
	struct evbuffer *all[] = {x->out, x->err, x->input};
	if (x->call.service)
		x->call.service->results -= evbuffer_get_length(x->out) + evbuffer_get_length(x->err);
	for (size_t i = 0; i < 3; i++)
		if (all[i])
			evbuffer_free(all[i]);
	json_decref(x->body);
	free(x);
}

static const char *text_of(const struct execution *x, const char *key)
{
	return json_string_value(json_object_get(x->arguments, key));
}

static struct slice bytes_of(struct evbuffer *b)
{
	size_t n = evbuffer_get_length(b);
	return slice_of(n ? (const char *)evbuffer_pullup(b, -1) : "", n);
}

/* ---- what comes of it ---- */

static void on_success(struct call *c, struct job_end end)
{
	struct execution *x = of(c);
	const struct tool_output o = {.end = end,
				      .out = bytes_of(x->out),
				      .err = bytes_of(x->err),
				      .written = x->written,
				      .truncated = x->truncated,
				      .timed_out = c->state == CALL_CANCELLED};
	char error[256];
	json_t *result = tool_result(c->tool, &o, error, sizeof(error));
	if (result)
		call_answer(c, 200, json_pack("{s:s, s:o}", "tool", c->name, "result", result));
	else
		call_fail(c, &(struct problem){502, NULL, NULL, error});
}

static void keep(struct execution *x, struct evbuffer *to, struct slice bytes)
{
	struct service *s = x->call.service;
	size_t have = evbuffer_get_length(to), room = x->most > have ? x->most - have : 0;
	size_t left = s->results < LIMIT_SERVE_RESULTS ? LIMIT_SERVE_RESULTS - s->results : 0;
	bytes = slice_head(bytes, room < left ? room : left);
	if (evbuffer_add(to, bytes.ptr, bytes.len) == 0)
		s->results += bytes.len;
}

static void on_data(struct call *c, enum frame_kind kind, struct slice bytes)
{
	struct execution *x = of(c);
	struct evbuffer *to = kind == FRAME_OUT ? x->out : x->err;
	const size_t before = evbuffer_get_length(to);
	keep(x, to, bytes);
	x->truncated |= evbuffer_get_length(to) - before < bytes.len;
	if (x->truncated && c->tool == TOOL_READ)
		on_success(c, (struct job_end){JOB_EXIT, 0});
}

/* ---- what it takes along ---- */

static void send_input(struct call *c)
{
	struct execution *x = of(c);
	char bytes[LIMIT_INSIDE_FRAME];
	while (x->input && c->job && job_has_room(c->job)) {
		int n = evbuffer_remove(x->input, bytes, sizeof(bytes));
		if (n > 0) {
			job_send(c->job, FRAME_DATA, slice_of(bytes, (size_t)n));
			continue;
		}
		evbuffer_free(x->input);
		x->input = NULL;
		job_send(c->job, FRAME_END, SLICE_NONE);
	}
}

/* False: no memory, and the call is over. */
static bool take_input(struct execution *x, const char *bytes, size_t n)
{
	x->input = evbuffer_new();
	if (x->input && (n == 0 || evbuffer_add(x->input, bytes, n) == 0))
		return true;
	call_fail(&x->call, &(struct problem){503, NULL, NULL, "no memory"});
	return false;
}

static void begin(struct execution *x, struct link *link, enum frame_kind kind, struct slice payload)
{
	if (call_job(&x->call, link, kind, payload))
		send_input(&x->call);
}

static void begin_shell(struct execution *x, struct link *link)
{
	char payload[LIMIT_INSIDE_FRAME];
	const char *dir = text_of(x, "workdir");
	int n = snprintf(payload, sizeof(payload), "%s%csh%c-c%c%s", dir ? dir : "", 0, 0, 0, text_of(x, "command"));
	begin(x, link, FRAME_RUN, slice_of(payload, (size_t)n + 1));
}

static void begin_write(struct execution *x, struct link *link)
{
	const json_t *text = json_object_get(x->arguments, "content");
	size_t n = json_string_length(text);
	char *bytes = text ? NULL : base64_decode(slice_str(text_of(x, "content_base64")), &n);
	bool ok = take_input(x, text ? json_string_value(text) : bytes, text || bytes ? n : 0);
	free(bytes);
	if (!ok)
		return;
	x->written = n;
	begin(x, link, FRAME_WRITE, slice_str(text_of(x, "path")));
}

/* cage-fetch waits for LIMIT_FETCH_MS at most, whatever time the call has. */
static void begin_http(struct execution *x, struct link *link)
{
	json_t *order = json_deep_copy(x->arguments);
	const json_int_t time_ms = (json_int_t)x->seconds * 1000;
	json_object_set_new(order, "timeout_ms", json_integer(time_ms < LIMIT_FETCH_MS ? time_ms : LIMIT_FETCH_MS));
	json_object_set_new(order, "max_bytes", json_integer(LIMIT_SERVE_TOOL_OUT));
	if (!json_object_get(order, "method"))
		json_object_set_new(order, "method", json_string("GET"));
	char *text = json_dumps(order, JSON_COMPACT);
	x->most = 8 * LIMIT_SERVE_TOOL_OUT; /* its answer is JSON */
	bool ok = take_input(x, text ? text : "", text ? strlen(text) : 0);
	json_decref(order);
	free(text);
	if (ok)
		begin(x, link, FRAME_FETCH, SLICE_NONE);
}

static const struct problem too_much = {
	503, NULL, "limit.tool",
	"too much that other calls have brought is not read yet, so that this one is not made"};

static void on_make(struct call *c, struct link *link)
{
	struct execution *x = of(c);
	const char *path = text_of(x, "path");
	if (c->service->results + http_unsent(c->service->http) >= LIMIT_SERVE_RESULTS) {
		call_fail(c, &too_much);
		return;
	}
	switch (c->tool) {
	case TOOL_SHELL:
		begin_shell(x, link);
		return;
	case TOOL_READ:
		begin(x, link, FRAME_READ, slice_str(path));
		return;
	case TOOL_WRITE:
		begin_write(x, link);
		return;
	case TOOL_LIST:
		begin(x, link, FRAME_LIST, slice_str(path ? path : "."));
		return;
	case TOOL_HTTP:
		begin_http(x, link);
		return;
	case TOOL_NONE:
		break;
	}
	call_fail(c, &(struct problem){422, NULL, NULL, "there is no such tool"});
}

/* ---- the beginning ---- */

static void check_tool_name(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_SANDBOX);
}

static void check_arguments(const struct place *p, const json_t *value)
{
	if (!json_is_object(value))
		place_error(p, "expected an object");
}

static void check_timeout(const struct place *p, const json_t *value)
{
	check_number(p, value, 1, LIMIT_SERVE_TOOL_S);
}

/* Only the shape: whether the arguments are good is of interest if the tool is allowed. */
static bool check_call(const json_t *body, json_t *errors)
{
	static const struct member fields[] = {{"tool", check_tool_name, true},
					       {"arguments", check_arguments, true},
					       {"timeout_seconds", check_timeout, false}};
	const struct place root = {errors, NULL, NULL, 0};
	check_object(&root, body, fields, 3);
	return json_array_size(errors) == 0;
}

static const struct call_kind execution_kind = {
	.make = on_make, .data = on_data, .drained = send_input, .succeed = on_success, .free = on_free};

/* NULL: no memory; body is the caller's still. */
static struct execution *execution_new(struct request *r, json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "tool"));
	const json_t *seconds = json_object_get(body, "timeout_seconds");
	struct execution *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	*x = (struct execution){.arguments = json_object_get(body, "arguments"),
				.out = evbuffer_new(),
				.err = evbuffer_new(),
				.most = LIMIT_SERVE_TOOL_OUT,
				.seconds = LIMIT_SERVE_TOOL_DEFAULT_S};
	if (!x->out || !x->err || !call_init(&x->call, &execution_kind, r, tool_find(name))) {
		on_free(&x->call);
		return NULL;
	}
	x->body = body;
	if (seconds)
		x->seconds = (unsigned)json_integer_value(seconds);
	if (x->call.tool == TOOL_NONE && sandbox_id_is_good(slice_str(name)))
		snprintf(x->call.name, sizeof(x->call.name), "%s", name);
	tool_detail(x->call.tool, x->arguments, x->call.detail);
	return x;
}

/* Whether the arguments are good is of interest only if the tool is allowed; whether what they say is, if they are good. */
static const char *judge(struct execution *x, struct sandbox *b)
{
	const json_t *blocked = json_object_get(b->row.spec, "blocked_commands");
	if (!tool_is_allowed(b->row.spec, x->call.name))
		return "tool.not_allowed";
	json_t *errors = json_array();
	tool_check(x->call.tool, x->arguments, errors);
	if (json_array_size(errors) > 0) {
		x->call.errors = errors;
		return "tool.arguments";
	}
	json_decref(errors);
	if (!b->blocked && x->call.tool == TOOL_SHELL)
		b->blocked = blocked_new(blocked);
	return tool_denied(b->blocked, x->arguments);
}

/* Judging a command takes time: not for one that has no place. */
static void execute(struct execution *x, struct sandbox *b)
{
	if (x->call.tool == TOOL_SHELL && !link_has_place(b->link)) {
		call_fail_errno(&x->call, EBUSY);
		return;
	}
	const char *reason = judge(x, b);
	const json_t *max = json_object_get(x->arguments, "max_bytes");
	if (!reason && x->call.tool == TOOL_READ && max)
		x->most = (size_t)json_integer_value(max);
	call_decide(&x->call, reason, x->seconds * 1000);
}

void api_execute(struct request *r)
{
	if (!idempotency_begin(r))
		return;
	json_t *body = request_json(r), *errors = json_array();
	if (!body) {
		json_decref(errors);
		return;
	}
	if (!check_call(body, errors)) {
		json_decref(body);
		answer_refusal(r, 422, NULL, errors, "the call is not good");
		return;
	}
	json_decref(errors);
	struct sandbox *b = api_ready_sandbox(r);
	struct execution *x = b ? execution_new(r, body) : NULL;
	if (x)
		execute(x, b);
	else
		json_decref(body);
	if (b && !x)
		answer_problem(r, 503, "no memory");
}

void api_tools(struct request *r)
{
	answer_json(r, 200, json_pack("{s:o}", "items", tools_json()));
}
