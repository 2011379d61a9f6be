/* A step: its sandbox is made as any other, and at its end its artifacts are taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/service/creation.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/workflow.h"
#include "orchestrator/service/workflow_check.h"
#include "orchestrator/service/workflow_files.h"

/* ---- states ---- */

static void set_message(struct step_row *r, const char *message)
{
	free(r->message);
	r->message = message ? strdup(message) : NULL;
}

bool step_enter(struct step *t, enum workflow_state state, const char *reason, const char *message)
{
	struct step_row next = *t->row;
	next.state = state;
	next.message = (char *)message;
	snprintf(next.reason, sizeof(next.reason), "%s", reason);
	if (!workflow_state_is_open(state))
		next.ended_us = (int64_t)clock_wall_us();
	enum store_result result = store_step_enter(t->workflow->service->store, t->workflow->row.id, &next);
	if (result == STORE_REFUSED || result == STORE_NONE)
		say("%s: step %s: %s can't follow %s", t->workflow->row.id, next.id, workflow_state_name(state),
		    workflow_state_name(t->row->state));
	if (result != STORE_OK)
		return false;
	next.message = t->row->message;
	*t->row = next;
	set_message(t->row, message);
	workflows_look_soon(t->workflow->service);
	return true;
}

/* Of what is under way there is one thing at a time. */
static void enter_phase(struct step *t, enum step_phase next)
{
	if ((t->phase == STEP_RESTS) == (next == STEP_RESTS))
		abort();
	t->phase = next;
}

/* ---- its sandbox ---- */

static json_t *input_json(const struct workflow *w, const json_t *input)
{
	char from[BACKEND_PATH];
	const char *step = json_string_value(json_object_get(input, "step"));
	const char *path = json_string_value(json_object_get(input, "path"));
	const char *to = json_string_value(json_object_get(input, "to"));
	for (size_t i = 0; i < w->row.n_steps; i++) {
		const struct step_row *giver = &w->row.steps[i];
		size_t n = artifact_find(giver->spec, path);
		const json_t *stored = json_array_get(giver->artifacts, n);
		if (strcmp(giver->id, step) != 0 || !stored)
			continue;
		workflow_file(w->service, w->row.id, i, n, from);
		return json_pack("{s:s, s:s, s:O}", "from", from, "to", to ? to : path, "sha256",
				 json_object_get(stored, "sha256"));
	}
	return NULL;
}

/* NULL: one of them is not there. */
static json_t *inputs_of(const struct step *t)
{
	json_t *list = json_array(), *input;
	size_t i;
	json_array_foreach(json_object_get(t->row->spec, "inputs"), i, input)
	{
		json_t *one = input_json(t->workflow, input);
		if (!one || json_array_append_new(list, one) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* What the keeper is told of them: all have their bound. */
static json_t *artifacts_of(const struct step *t)
{
	json_t *list = json_array(), *artifact;
	size_t i;
	json_array_foreach(json_object_get(t->row->spec, "artifacts"), i, artifact)
	{
		json_array_append_new(list, json_pack("{s:O, s:I}", "path", json_object_get(artifact, "path"),
						      "max_bytes", artifact_most(artifact)));
	}
	return list;
}

/* In the transaction that stores the sandbox: there is never one without the other. */
static enum store_result on_stored(void *arg, const struct row *row)
{
	struct step *t = arg;
	struct step_row next = *t->row;
	next.state = WORKFLOW_RUNNING;
	next.started_us = row->created_us;
	snprintf(next.reason, sizeof(next.reason), "created");
	memcpy(next.sandbox, row->id, sizeof(next.sandbox));
	t->next = next;
	return store_step_put(t->workflow->service->store, t->workflow->row.id, &next);
}

/* It is committed: what was stored counts. */
static void on_made(void *arg)
{
	struct step *t = arg;
	enter_phase(t, STEP_RESTS);
	t->tries = 0;
	*t->row = t->next;
}

/* Something that is no fault of its own: again a second later, whoever looks before. */
static void try_later(struct step *t)
{
	t->again_us = clock_mono_us() + LIMIT_SERVE_TICK_MS * 1000ull;
}

/* A queue or a disk that is full is waited for; all else is no better the next time, or not for long. */
static void on_refused(void *arg, const struct creation_refusal *why)
{
	struct step *t = arg;
	char text[LIMIT_SERVE_PROBLEM];
	const json_t *first = json_array_get(why->errors, 0);
	enter_phase(t, STEP_RESTS);
	if (why->status == 429 || why->status == 507 || (why->status == 503 && ++t->tries < LIMIT_WORKFLOW_TRIES)) {
		try_later(t);
		return;
	}
	const char *pointer = json_string_value(json_object_get(first, "pointer"));
	const char *detail = json_string_value(json_object_get(first, "detail"));
	snprintf(text, sizeof(text), "%s%s%s%s%s", why->detail, first ? ": " : "", pointer ? pointer : "",
		 pointer && pointer[0] ? ": " : "", detail ? detail : "");
	step_enter(t, WORKFLOW_FAILED, why->status == 409 ? "artifact.changed" : "refused", text);
}

static void begin(struct step *t, const json_t *body, json_t *inputs)
{
	const char *id = t->workflow->row.id;
	const struct creation_order order = {.service = t->workflow->service,
					     .body = body,
					     .more = json_pack("{s:{s:s}, s:s, s:o}", "labels", "workflow", id,
							       "workflow", id, "artifacts", artifacts_of(t)),
					     .inputs = inputs,
					     .at = &t->creation,
					     .with = on_stored,
					     .made = on_made,
					     .refused = on_refused,
					     .arg = t};
	enter_phase(t, STEP_CREATES);
	creation_begin(&order);
}

bool step_may_be_tried(const struct step *t)
{
	return t->phase == STEP_RESTS && clock_mono_us() >= t->again_us;
}

void step_begin(struct step *t)
{
	json_t *body, *inputs = inputs_of(t);
	if (!inputs) {
		step_enter(t, WORKFLOW_FAILED, "artifact.missing", "an artifact that it is handed is not there");
		return;
	}
	if (store_step_body(t->workflow->service->store, t->workflow->row.id, t->row->n, &body) == STORE_OK)
		begin(t, body, inputs);
	else
		json_decref(inputs); /* the next tick tries again */
	json_decref(body);
}

/* ---- its end ---- */

static void on_taken(void *arg, int status, struct slice said)
{
	struct step *t = arg;
	const json_t *asked = json_object_get(t->row->spec, "artifacts");
	const char *why = NULL;
	size_t i;
	json_t *one, *list = workflow_files_stored(status, said, json_array_size(asked), &why);
	enter_phase(t, STEP_RESTS);
	if (!list && (++t->tries < LIMIT_WORKFLOW_TRIES || strcmp(why, "disk.full") == 0)) {
		if (t->tries == 1)
			say("%s: step %s: its artifacts can't be stored (%s), which is tried again each second",
			    t->workflow->row.id, t->row->id, why);
		try_later(t);
		return; /* what its sandbox left stays until then */
	}
	if (!list) {
		step_enter(t, WORKFLOW_FAILED, why, "its artifacts could not be stored");
		return;
	}
	json_array_foreach(list, i, one)
	{
		json_object_set(one, "path", json_object_get(json_array_get(asked, i), "path"));
	}
	t->row->artifacts = list;
	if (step_enter(t, WORKFLOW_SUCCEEDED, "exit", NULL))
		return;
	json_decref(list); /* the next look takes them again */
	t->row->artifacts = NULL;
}

static void take_artifacts(struct step *t)
{
	const size_t n = json_array_size(json_object_get(t->row->spec, "artifacts"));
	if (n == 0)
		step_enter(t, WORKFLOW_SUCCEEDED, "exit", NULL);
	else if (workflow_files_store(t->workflow->service, t->workflow->row.id, t->row->n, t->row->sandbox, n,
				      on_taken, t))
		enter_phase(t, STEP_STORES);
}

/* What a command ended with is all that there is to be said of it, if nobody has said more. */
static void fail(struct step *t, const struct row *row)
{
	char text[64];
	snprintf(text, sizeof(text), "its command has ended with %d", row->exit_code);
	step_enter(t, WORKFLOW_FAILED, row->reason, row->message || !row->has_exit ? row->message : text);
}

static void conclude(struct step *t, const struct row *row)
{
	switch (row->state) {
	case QUEUED:
	case CREATING:
	case RUNNING:
		return;
	case SUCCEEDED:
		take_artifacts(t);
		return;
	case FAILED:
		fail(t, row);
		return;
	case TIMED_OUT:
		step_enter(t, WORKFLOW_TIMED_OUT, row->reason, row->message);
		return;
	case KILLED:
		step_enter(t, WORKFLOW_KILLED, row->reason, row->message);
		return;
	case DELETED:
	case STATES:
		break;
	}
	step_enter(t, WORKFLOW_FAILED, "sandbox.deleted", NULL);
}

void step_look(struct step *t)
{
	struct service *s = t->workflow->service;
	struct row row = {0};
	if (!step_may_be_tried(t) || sandbox_find(s, t->row->sandbox))
		return;
	enum store_result result = store_get(s->store, t->row->sandbox, &row);
	if (result == STORE_OK)
		conclude(t, &row);
	else if (result == STORE_NONE)
		step_enter(t, WORKFLOW_FAILED, "sandbox.deleted", NULL);
	row_free(&row);
}

/* ---- given up ---- */

void step_drop(struct step *t)
{
	if (t->phase == STEP_CREATES && t->creation)
		creation_abandon(t->creation);
	else if (t->phase == STEP_STORES)
		child_forget(t->workflow->service->children, t);
	if (t->phase != STEP_RESTS)
		enter_phase(t, STEP_RESTS);
}

/* Artifacts that are being taken are those of one that has succeeded: that is not undone. */
void step_cancel(struct step *t)
{
	struct sandbox *b;
	if (t->row->state == WORKFLOW_WAITING) {
		step_drop(t);
		step_enter(t, WORKFLOW_CANCELLED, t->workflow->row.cancelling, NULL);
	} else if (t->row->state == WORKFLOW_RUNNING && (b = sandbox_find(t->workflow->service, t->row->sandbox))) {
		if (sandbox_end(b, "asked") != STORE_OK)
			say("%s: %s could not be ended, and is asked again", t->workflow->row.id, b->row.id);
	}
}
