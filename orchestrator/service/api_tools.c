/* A tool call: checked, decided, logged, made. No log, no call: what it does begins when the decision is in the log. */
#include <errno.h>
#include <event2/buffer.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/net/loop.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/tools.h"
#include "orchestrator/service/utf8.h"

enum call_state {
	CALL_LOGGING, /* that it is allowed */
	CALL_MAKING,
	CALL_REFUSING,  /* that it is denied is being logged */
	CALL_CANCELLED, /* its time is over */
};

struct call {
	struct request *request;
	struct service *service;
	enum call_state state;
	enum tool tool;
	char name[LIMIT_SANDBOX + 1]; /* of the tool */
	json_t *body;
	const json_t *arguments; /* in it */
	const char *reason;      /* why it is denied */
	struct link_job *job;
	struct event *clock;
	struct evbuffer *out, *err, *input;
	size_t most; /* bytes of out, and of err */
	bool truncated;
	unsigned seconds;
};

static void call_free(struct call *c)
{
	if (c->job)
		job_forget(c->job);
	if (c->clock)
		event_free(c->clock);
	struct evbuffer *all[] = {c->out, c->err, c->input};
	for (size_t i = 0; i < 3; i++)
		if (all[i])
			evbuffer_free(all[i]);
	json_decref(c->body);
	free(c);
}

static void on_gone(void *work)
{
	call_free(work);
}

/* The request back, and the call is no more. */
static struct request *leave(struct call *c)
{
	struct request *r = c->request;
	r->gone = NULL;
	call_free(c);
	return r;
}

static const char *text_of(const struct call *c, const char *key)
{
	return json_string_value(json_object_get(c->arguments, key));
}

static struct slice bytes_of(struct evbuffer *b)
{
	size_t n = evbuffer_get_length(b);
	return slice_of(n ? (const char *)evbuffer_pullup(b, -1) : "", n);
}

/* ---- results ---- */

static void put_text(json_t *result, const char *key, struct slice bytes)
{
	struct evbuffer *text = evbuffer_new();
	struct utf8_rest rest = {.n = 0};
	if (!text)
		return;
	utf8_add(text, &rest, bytes);
	utf8_end(text, &rest);
	struct slice mended = bytes_of(text);
	json_object_set_new(result, key, json_stringn(mended.ptr, mended.len));
	evbuffer_free(text);
}

static json_t *shell_result(struct call *c, struct job_end end)
{
	json_t *result = json_object();
	if (end.how == JOB_EXIT)
		json_object_set_new(result, "exit_code", json_integer(end.number));
	else
		json_object_set_new(result, "signal", json_integer(end.number));
	put_text(result, "stdout", bytes_of(c->out));
	put_text(result, "stderr", bytes_of(c->err));
	json_object_set_new(result, "truncated", json_boolean(c->truncated));
	json_object_set_new(result, "timed_out", json_boolean(c->state == CALL_CANCELLED));
	return result;
}

static json_t *read_result(struct call *c)
{
	json_t *result = json_object();
	struct slice bytes = bytes_of(c->out);
	tool_put_bytes(result, "content", bytes);
	json_object_set_new(result, "size", json_integer((json_int_t)bytes.len));
	json_object_set_new(result, "truncated", json_boolean(c->truncated));
	return result;
}

static json_t *write_result(const struct call *c)
{
	const json_t *text = json_object_get(c->arguments, "content");
	size_t n = json_string_length(text);
	if (!text)
		free(base64_decode(slice_str(text_of(c, "content_base64")), &n));
	return json_pack("{s:I}", "size", (json_int_t)n);
}

/* What cage-fetch has said, as far as it is part of a result. */
static json_t *http_result(struct call *c, char *error, size_t room)
{
	static const char *const keys[] = {"status", "headers", "body", "body_base64", "truncated"};
	struct slice bytes = bytes_of(c->out);
	json_t *said = json_loadb(bytes.ptr, bytes.len, JSON_ALLOW_NUL, NULL), *result = json_object();
	const char *why = json_string_value(json_object_get(said, "error"));
	const char *message = json_string_value(json_object_get(said, "message"));
	bool ok = json_is_integer(json_object_get(said, "status"));
	snprintf(error, room, "the request could not be made%s%s%s%s", why ? ": " : "", why ? why : "",
		 message ? ": " : "", message ? message : "");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && ok; i++)
		if (json_object_get(said, keys[i]))
			json_object_set(result, keys[i], json_object_get(said, keys[i]));
	json_decref(said);
	if (ok)
		return result;
	json_decref(result);
	return NULL;
}

static void succeed(struct call *c, json_t *result)
{
	json_t *answer = json_pack("{s:s, s:o}", "tool", c->name, "result", result);
	struct request *r = leave(c);
	enum store_result kept = answer ? idempotency_keep(r, 200, answer, NULL) : STORE_FAILED;
	if (kept == STORE_OK) {
		answer_json(r, 200, answer);
		return;
	}
	json_decref(answer);
	answer_problem(r, 507, "the call was made, and its answer can't be kept for its Idempotency-Key");
}

static void succeed_with(struct call *c, struct job_end end)
{
	char error[256] = "its result can't be told: no memory";
	json_t *result = NULL;
	switch (c->tool) {
	case TOOL_SHELL:
		result = shell_result(c, end);
		break;
	case TOOL_READ:
		result = read_result(c);
		break;
	case TOOL_WRITE:
		result = write_result(c);
		break;
	case TOOL_LIST:
		result = json_pack("{s:o}", "entries", tool_entries(bytes_of(c->out)));
		break;
	case TOOL_HTTP:
		result = http_result(c, error, sizeof(error));
		break;
	case TOOL_NONE:
		break;
	}
	if (result)
		succeed(c, result);
	else
		answer_problem(leave(c), 502, "%s", error);
}

/* ---- denied ---- */

static const char *sentence_of(enum tool t, const char *reason)
{
	if (t == TOOL_NONE)
		return "there is no such tool; GET /api/v1/tools lists them";
	return strcmp(reason, "tool.not_allowed") == 0 ? "this sandbox may not use the tool"
	       : strcmp(reason, "tool.command") == 0   ? "the command is blocked in this sandbox"
						       : TOOL_PATH_ESCAPES;
}

static void on_denial_logged(void *arg, struct job_end end)
{
	struct call *c = arg;
	const char *reason = c->reason, *sentence = sentence_of(c->tool, reason);
	c->job = NULL;
	if (end.how == JOB_EXIT && end.number == 0)
		answer_refusal(leave(c), 403, reason, NULL, sentence);
	else if (end.how == JOB_ERROR && end.number == EPIPE)
		answer_errno(leave(c), EPIPE);
	else
		answer_refusal(leave(c), 503, "log.unavailable", NULL, "the call is denied, and that can't be logged");
}

static bool log_decision(struct call *c, const char *decision, const char *reason, const struct job_events *events)
{
	char detail[LIMIT_SERVE_DETAIL + 1], payload[LIMIT_SERVE_DETAIL + 256];
	struct sandbox *b = sandbox_find(c->service, c->request->sandbox);
	tool_detail(c->tool, c->arguments, detail);
	int n = snprintf(payload, sizeof(payload), "%s%c%s%c%s%c%s", decision, 0, reason, 0, c->name, 0, detail);
	c->job = b && b->phase == PHASE_READY ? link_begin(b->link, FRAME_TOOL, slice_of(payload, (size_t)n), events, c)
					      : NULL;
	return c->job;
}

static void deny(struct call *c, const char *reason)
{
	static const struct job_events events = {.done = on_denial_logged};
	c->reason = reason;
	c->state = CALL_REFUSING;
	if (!log_decision(c, "block", reason, &events))
		on_denial_logged(c, (struct job_end){JOB_ERROR, EBUSY});
}

/* ---- made ---- */

static void keep(struct call *c, struct evbuffer *to, struct slice bytes)
{
	size_t have = evbuffer_get_length(to), room = c->most > have ? c->most - have : 0;
	if (bytes.len > room)
		c->truncated = true;
	bytes = slice_head(bytes, room);
	if (bytes.len > 0)
		evbuffer_add(to, bytes.ptr, bytes.len);
}

static void on_data(void *arg, enum frame_kind kind, struct slice bytes)
{
	struct call *c = arg;
	keep(c, kind == FRAME_OUT ? c->out : c->err, bytes);
	if (c->truncated && c->tool == TOOL_READ)
		succeed_with(c, (struct job_end){JOB_EXIT, 0});
}

static void on_done(void *arg, struct job_end end)
{
	struct call *c = arg;
	c->job = NULL;
	bool is_late = c->state == CALL_CANCELLED && (c->tool != TOOL_SHELL || end.how == JOB_ERROR);
	if (is_late)
		answer_refusal(leave(c), 504, "limit.tool", NULL, "the call took too long");
	else if (end.how != JOB_ERROR)
		succeed_with(c, end);
	else if (errno_is_escape(end.number))
		deny(c, "tool.path");
	else
		answer_errno(leave(c), end.number);
}

static void send_input(void *arg)
{
	struct call *c = arg;
	char bytes[LIMIT_INSIDE_FRAME];
	while (c->input && c->job && job_has_room(c->job)) {
		int n = evbuffer_remove(c->input, bytes, sizeof(bytes));
		if (n > 0) {
			job_send(c->job, FRAME_DATA, slice_of(bytes, (size_t)n));
			continue;
		}
		evbuffer_free(c->input);
		c->input = NULL;
		job_send(c->job, FRAME_END, SLICE_NONE);
	}
}

static const struct job_events making = {.data = on_data, .done = on_done, .drained = send_input};

static void begin_job(struct call *c, struct link *link, enum frame_kind kind, struct slice payload)
{
	c->job = link_begin(link, kind, payload, &making, c);
	if (!c->job)
		answer_errno(leave(c), EBUSY);
	else
		send_input(c);
}

static void begin_shell(struct call *c, struct link *link)
{
	char payload[LIMIT_INSIDE_FRAME];
	const char *dir = text_of(c, "workdir");
	int n = snprintf(payload, sizeof(payload), "%s%csh%c-c%c%s", dir ? dir : "", 0, 0, 0, text_of(c, "command"));
	begin_job(c, link, FRAME_RUN, slice_of(payload, (size_t)n + 1));
}

static void begin_write(struct call *c, struct link *link)
{
	const json_t *text = json_object_get(c->arguments, "content");
	size_t n = json_string_length(text);
	char *bytes = text ? NULL : base64_decode(slice_str(text_of(c, "content_base64")), &n);
	c->input = evbuffer_new();
	if (c->input && n > 0)
		evbuffer_add(c->input, text ? json_string_value(text) : bytes, n);
	free(bytes);
	if (!c->input || evbuffer_get_length(c->input) != n) {
		answer_problem(leave(c), 503, "no memory");
		return;
	}
	begin_job(c, link, FRAME_WRITE, slice_str(text_of(c, "path")));
}

static void begin_http(struct call *c, struct link *link)
{
	json_t *order = json_deep_copy(c->arguments);
	json_object_set_new(order, "timeout_ms", json_integer((json_int_t)c->seconds * 1000));
	json_object_set_new(order, "max_bytes", json_integer(LIMIT_SERVE_TOOL_OUT));
	if (!json_object_get(order, "method"))
		json_object_set_new(order, "method", json_string("GET"));
	char *text = json_dumps(order, JSON_COMPACT);
	c->most = 8 * LIMIT_SERVE_TOOL_OUT; /* its answer is JSON */
	c->input = evbuffer_new();
	bool ok = text && c->input && evbuffer_add(c->input, text, strlen(text)) == 0;
	json_decref(order);
	free(text);
	if (!ok) {
		answer_problem(leave(c), 503, "no memory");
		return;
	}
	begin_job(c, link, FRAME_FETCH, SLICE_NONE);
}

static void make(struct call *c)
{
	struct sandbox *b = sandbox_find(c->service, c->request->sandbox);
	const char *path = text_of(c, "path");
	if (!b || b->phase != PHASE_READY) {
		answer_errno(leave(c), EPIPE);
		return;
	}
	c->state = CALL_MAKING;
	switch (c->tool) {
	case TOOL_SHELL:
		begin_shell(c, b->link);
		return;
	case TOOL_READ:
		begin_job(c, b->link, FRAME_READ, slice_str(path));
		return;
	case TOOL_WRITE:
		begin_write(c, b->link);
		return;
	case TOOL_LIST:
		begin_job(c, b->link, FRAME_LIST, slice_str(path ? path : "."));
		return;
	case TOOL_HTTP:
		begin_http(c, b->link);
		return;
	case TOOL_NONE:
		break;
	}
	answer_errno(leave(c), EINVAL);
}

static void on_allow_logged(void *arg, struct job_end end)
{
	struct call *c = arg;
	c->job = NULL;
	if (end.how == JOB_EXIT && end.number == 0)
		make(c);
	else if (end.how == JOB_ERROR && end.number == EPIPE)
		answer_errno(leave(c), EPIPE);
	else
		answer_refusal(leave(c), 503, "log.unavailable", NULL, "the call can't be logged, so it is not made");
}

/* ---- time ---- */

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;
	const struct timeval last = loop_ms(LIMIT_SERVE_TOOL_END_MS);
	(void)fd, (void)what;
	if (c->state != CALL_MAKING) {
		answer_refusal(leave(c), 504, "limit.tool", NULL, "the call took too long");
		return;
	}
	c->state = CALL_CANCELLED;
	job_send(c->job, FRAME_CANCEL, SLICE_NONE);
	evtimer_add(c->clock, &last);
}

/* ---- the beginning ---- */

static void check_tool_name(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, 64);
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

static struct call *call_new(struct request *r, json_t *body)
{
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	const char *name = json_string_value(json_object_get(body, "tool"));
	const json_t *seconds = json_object_get(body, "timeout_seconds"), *max;
	*c = (struct call){.request = r, .service = r->service, .body = body, .most = LIMIT_SERVE_TOOL_OUT};
	c->tool = tool_find(name);
	c->arguments = json_object_get(body, "arguments");
	c->seconds = seconds ? (unsigned)json_integer_value(seconds) : LIMIT_SERVE_TOOL_DEFAULT_S;
	max = json_object_get(c->arguments, "max_bytes");
	if (c->tool == TOOL_READ && max)
		c->most = (size_t)json_integer_value(max);
	snprintf(c->name, sizeof(c->name), "%s", sandbox_id_is_good(slice_str(name)) ? name : "unknown");
	c->out = evbuffer_new();
	c->err = evbuffer_new();
	c->clock = evtimer_new(r->service->base, on_clock, c);
	if (!c->out || !c->err || !c->clock) {
		c->body = NULL; /* the caller's still */
		call_free(c);
		return NULL;
	}
	r->gone = on_gone;
	r->work = c;
	return c;
}

static void decide(struct call *c, const struct sandbox *b)
{
	static const struct job_events events = {.done = on_allow_logged};
	const struct timeval time = loop_ms(c->seconds * 1000);
	const char *reason = tool_denied(b->row.spec, c->name, c->arguments);
	evtimer_add(c->clock, &time);
	if (reason)
		deny(c, reason);
	else if (!log_decision(c, "allow", "", &events))
		answer_errno(leave(c), EBUSY);
}

static void refuse(struct request *r, json_t *body, json_t *errors)
{
	json_decref(body);
	answer_refusal(r, 422, NULL, errors, "the call is not good");
}

void api_execute(struct request *r)
{
	if (!idempotency_begin(r))
		return;
	json_t *body = request_json(r);
	if (!body)
		return;
	json_t *errors = json_array();
	if (!check_call(body, errors)) {
		refuse(r, body, errors);
		return;
	}
	tool_check(tool_find(json_string_value(json_object_get(body, "tool"))), json_object_get(body, "arguments"),
		   errors);
	if (json_array_size(errors) > 0) {
		refuse(r, body, errors);
		return;
	}
	json_decref(errors);
	struct sandbox *b = api_ready_sandbox(r);
	struct call *c = b ? call_new(r, body) : NULL;
	if (c)
		decide(c, b);
	else
		json_decref(body);
	if (b && !c)
		answer_problem(r, 503, "no memory");
}

void api_tools(struct request *r)
{
	answer_json(r, 200, json_pack("{s:o}", "items", tools_json()));
}
