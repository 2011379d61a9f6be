/* The probes of cage verify, in a sandbox that runs: cage-inside is asked for them, as a program of the room. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "core/net/loop.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/tools.h"
#include "orchestrator/service/utf8.h"

#define PROGRAM "\0/run/cage/inside\0--verify" /* in the workspace */

struct verification {
	struct request *request;
	struct link_job *job;
	struct event *clock;
	struct evbuffer *out;
};

static void verification_free(struct verification *v)
{
	if (v->job)
		job_forget(v->job);
	if (v->clock)
		event_free(v->clock);
	if (v->out)
		evbuffer_free(v->out);
	free(v);
}

static void on_gone(void *work)
{
	verification_free(work);
}

/* The request back, and the verification is no more. */
static struct request *leave(struct verification *v)
{
	struct request *r = v->request;
	r->gone = NULL;
	verification_free(v);
	return r;
}

/* ---- the result ---- */

static json_t *text(struct slice s)
{
	json_t *value = json_stringn(s.ptr, s.len);
	return value ? value : json_string(""); /* it comes out of the sandbox, and may be anything */
}

/* "VERDICT TAB RESULT TAB NAME TAB REASON". NULL: it is none. */
static json_t *probe_json(struct slice line)
{
	struct slice verdict = slice_cut(&line, '\t'), result = slice_cut(&line, '\t'), name = slice_cut(&line, '\t');
	const bool left_out = slice_eq(verdict, SLICE("left out")), good = slice_eq(verdict, SLICE("ok"));
	if (name.len == 0 || (!left_out && !good && !slice_eq(verdict, SLICE("SURPRISE"))))
		return NULL;
	json_t *probe = json_pack("{s:o, s:s}", "name", text(name), "verdict",
				  left_out ? "left_out"
				  : good   ? "ok"
					   : "surprise");
	if (left_out)
		json_object_set_new(probe, "reason", text(line));
	else
		json_object_set_new(probe, "result", text(result));
	return probe;
}

static size_t count(const json_t *probes, const char *verdict)
{
	size_t i, n = 0;
	const json_t *probe;
	json_array_foreach(probes, i, probe) n +=
		strcmp(json_string_value(json_object_get(probe, "verdict")), verdict) == 0;
	return n;
}

/* The last line, which is no probe, says that all were tried. */
static json_t *result_json(struct slice said)
{
	json_t *probes = json_array();
	bool is_whole = false;
	while (said.len > 0) {
		json_t *probe = probe_json(slice_cut(&said, '\n'));
		if (probe)
			json_array_append_new(probes, probe);
		is_whole = !probe && said.len == 0;
	}
	if (!is_whole || json_array_size(probes) == 0) {
		json_decref(probes);
		return NULL;
	}
	const size_t surprises = count(probes, "surprise"), left_out = count(probes, "left_out");
	return json_pack("{s:b, s:I, s:I, s:I, s:o}", "closed", surprises == 0, "tried",
			 (json_int_t)(json_array_size(probes) - left_out), "surprises", (json_int_t)surprises,
			 "left_out", (json_int_t)left_out, "probes", probes);
}

/* ---- the job ---- */

static void on_data(void *arg, enum frame_kind kind, struct slice bytes)
{
	struct verification *v = arg;
	size_t have = evbuffer_get_length(v->out);
	if (kind == FRAME_OUT && have + bytes.len <= LIMIT_SERVE_TOOL_OUT)
		evbuffer_add(v->out, bytes.ptr, bytes.len);
}

static void fail(struct verification *v, int error)
{
	const struct problem p = errno_problem(error);
	answer_told(leave(v), &p);
}

static void on_done(void *arg, struct job_end end)
{
	struct verification *v = arg;
	v->job = NULL;
	if (end.how == JOB_ERROR) {
		fail(v, end.number);
		return;
	}
	size_t n = evbuffer_get_length(v->out);
	json_t *result = n > 0 ? result_json(slice_of((const char *)evbuffer_pullup(v->out, -1), n)) : NULL;
	bool fits =
		result && end.how == JOB_EXIT && (end.number == 0) == json_is_true(json_object_get(result, "closed"));
	if (fits) {
		answer_json(leave(v), 200, result);
		return;
	}
	json_decref(result);
	answer_problem(leave(v), 502, "the probes did not come to their end");
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	answer_problem(leave(arg), 504, "the probes took too long");
}

void api_verify(struct request *r)
{
	static const struct job_events events = {.data = on_data, .done = on_done};
	const struct timeval time = loop_ms(LIMIT_SERVE_VERIFY_MS);
	struct sandbox *b = api_ready_sandbox(r);
	struct verification *v = b ? calloc(1, sizeof(*v)) : NULL;
	if (!b)
		return;
	if (!v) {
		answer_problem(r, 503, "no memory");
		return;
	}
	v->request = r;
	r->gone = on_gone;
	r->work = v;
	v->out = evbuffer_new();
	v->clock = evtimer_new(r->service->base, on_clock, v);
	if (!v->out || !v->clock || evtimer_add(v->clock, &time) != 0) {
		answer_problem(leave(v), 503, "no memory");
		return;
	}
	v->job = link_begin(b->link, FRAME_RUN, slice_of(PROGRAM, sizeof(PROGRAM)), &events, v);
	if (!v->job)
		fail(v, EBUSY);
}
