/* What follows when a step has ended, and the end of all. */
#include "orchestrator/service/workflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/creation.h"

/* ---- the list ---- */

static struct workflow *find(const struct service *s, const char *id)
{
	for (struct workflow *w = s->workflows; w; w = w->next)
		if (strcmp(w->row.id, id) == 0)
			return w;
	return NULL;
}

bool workflows_have_room(const struct service *s)
{
	size_t n = 0;
	for (const struct workflow *w = s->workflows; w; w = w->next)
		n++;
	return n < LIMIT_WORKFLOWS;
}

static void free_workflow(struct workflow *w)
{
	for (size_t i = 0; i < w->row.n_steps && w->steps; i++)
		step_drop(&w->steps[i]);
	workflow_row_free(&w->row);
	free(w->steps);
	free(w);
}

/* NULL: no memory, or it can't be read. */
static struct workflow *load(struct service *s, const char *id)
{
	struct workflow *w = calloc(1, sizeof(*w));
	bool is_read = w && store_workflow_get(s->store, id, &w->row) == STORE_OK;
	if (is_read)
		w->steps = calloc(w->row.n_steps + 1, sizeof(*w->steps));
	if (!is_read || !w->steps) {
		if (is_read)
			workflow_row_free(&w->row);
		free(w);
		return NULL;
	}
	w->service = s;
	for (size_t i = 0; i < w->row.n_steps; i++)
		w->steps[i] = (struct step){.workflow = w, .row = &w->row.steps[i]};
	return w;
}

/* ---- going on ---- */

static const struct step_row *row_of(const struct workflow *w, const char *id)
{
	for (size_t i = 0; i < w->row.n_steps; i++)
		if (strcmp(w->row.steps[i].id, id) == 0)
			return &w->row.steps[i];
	return NULL;
}

/* The state that the needs of a step come to: WORKFLOW_SUCCEEDED, WORKFLOW_WAITING, or WORKFLOW_SKIPPED with the id of who is to
 * blame. */
static enum workflow_state needs_of(const struct step *t, const char **blamed)
{
	enum workflow_state all = WORKFLOW_SUCCEEDED;
	size_t i;
	json_t *id;
	json_array_foreach(json_object_get(t->row->spec, "needs"), i, id)
	{
		const struct step_row *needed = row_of(t->workflow, json_string_value(id));
		if (needed && workflow_state_is_open(needed->state)) {
			all = WORKFLOW_WAITING;
		} else if (!needed || needed->state != WORKFLOW_SUCCEEDED) {
			*blamed = json_string_value(id);
			return WORKFLOW_SKIPPED;
		}
	}
	return all;
}

static void look_at_waiting(struct step *t)
{
	char text[LIMIT_SERVE_PROBLEM];
	const char *blamed = "";
	if (!step_may_be_tried(t))
		return;
	enum workflow_state needs = needs_of(t, &blamed);
	if (needs == WORKFLOW_SKIPPED) {
		snprintf(text, sizeof(text), "step %s, which it needs, did not succeed", blamed);
		step_enter(t, WORKFLOW_SKIPPED, "needs", text);
	} else if (needs == WORKFLOW_SUCCEEDED && creation_has_place(t->workflow->service)) {
		step_begin(t);
	}
}

static void look_at_step(struct step *t)
{
	if (t->workflow->row.cancelling[0])
		step_cancel(t);
	if (t->row->state == WORKFLOW_RUNNING)
		step_look(t);
	else if (t->row->state == WORKFLOW_WAITING && !t->workflow->row.cancelling[0])
		look_at_waiting(t);
}

/* ---- the end ---- */

static bool all_are(const struct workflow *w, bool (*is)(enum workflow_state))
{
	for (size_t i = 0; i < w->row.n_steps; i++)
		if (!is(w->row.steps[i].state))
			return false;
	return true;
}

static bool is_at_its_end(enum workflow_state s)
{
	return !workflow_state_is_open(s);
}

static bool is_success(enum workflow_state s)
{
	return s == WORKFLOW_SUCCEEDED;
}

/* The only way of a workflow to another state. */
static bool enter(struct workflow *w, enum workflow_state state, const char *reason)
{
	struct workflow_row next = w->row;
	next.state = state;
	next.ended_us = (int64_t)clock_wall_us();
	snprintf(next.reason, sizeof(next.reason), "%s", reason);
	if (store_workflow_enter(w->service->store, &next) != STORE_OK)
		return false; /* the next tick tries again */
	w->row = next;
	return true;
}

/* Where all steps have succeeded before it was known that it shall end, it has succeeded. */
static bool has_ended(struct workflow *w)
{
	if (!all_are(w, is_at_its_end))
		return false;
	if (all_are(w, is_success))
		return enter(w, WORKFLOW_SUCCEEDED, "steps");
	if (w->row.cancelling[0])
		return enter(w, WORKFLOW_CANCELLED, w->row.cancelling);
	return enter(w, WORKFLOW_FAILED, "steps");
}

static void look(struct service *s)
{
	for (struct workflow **at = &s->workflows; *at;) {
		struct workflow *w = *at;
		for (size_t i = 0; i < w->row.n_steps; i++)
			look_at_step(&w->steps[i]);
		if (has_ended(w)) {
			*at = w->next;
			free_workflow(w);
		} else {
			at = &w->next;
		}
	}
	workflow_removals_look(s);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	look(arg);
}

void workflows_look_soon(struct service *s)
{
	const struct timeval now = {0};
	if (s->workflow_look)
		evtimer_add(s->workflow_look, &now);
}

void workflows_tick(struct service *s)
{
	look(s);
}

/* ---- from outside ---- */

bool workflow_add(struct service *s, const char *id)
{
	struct workflow *w = load(s, id);
	if (!w)
		return false;
	w->next = s->workflows;
	s->workflows = w;
	workflows_look_soon(s);
	return true;
}

enum store_result workflow_cancel(struct service *s, const char *id, const char *reason, bool is_deleted)
{
	struct workflow *w = find(s, id);
	enum store_result result = store_workflow_cancel(s->store, id, reason, is_deleted);
	if (result != STORE_OK)
		return result;
	if (w && !w->row.cancelling[0])
		snprintf(w->row.cancelling, sizeof(w->row.cancelling), "%s", reason);
	workflows_look_soon(s);
	return STORE_OK;
}

void workflow_sandbox_ended(struct service *s, const struct row *row)
{
	if (json_object_get(row->spec, "workflow"))
		workflows_look_soon(s);
}

bool workflow_holds(const struct service *s, const struct row *row)
{
	const char *id = json_string_value(json_object_get(row->spec, "workflow"));
	const struct workflow *w = id ? find(s, id) : NULL;
	for (size_t i = 0; w && i < w->row.n_steps; i++)
		if (strcmp(w->row.steps[i].sandbox, row->id) == 0)
			return workflow_state_is_open(w->row.steps[i].state);
	return false;
}

/* ---- what there was ---- */

struct found {
	char ids[LIMIT_WORKFLOWS][STORE_ID];
	size_t n;
};

static void collect(void *arg, const struct workflow_row *row)
{
	struct found *f = arg;
	if (f->n < LIMIT_WORKFLOWS)
		memcpy(f->ids[f->n++], row->id, STORE_ID);
}

bool workflows_start(struct service *s)
{
	struct found *f = calloc(1, sizeof(*f));
	s->workflow_look = evtimer_new(s->base, on_look, s);
	bool ok = f && s->workflow_look && store_workflow_open(s->store, collect, f) == STORE_OK;
	for (size_t i = 0; ok && i < f->n; i++)
		ok = workflow_add(s, f->ids[i]);
	if (!ok)
		say("the workflows that there are can't be read");
	else if (f->n > 0)
		say("%zu workflow%s found again", f->n, f->n == 1 ? " is" : "s are");
	free(f);
	return ok;
}

void workflows_free(struct service *s)
{
	while (s->workflows) {
		struct workflow *w = s->workflows;
		s->workflows = w->next;
		free_workflow(w);
	}
	workflow_removals_free(s);
	if (s->workflow_look)
		event_free(s->workflow_look);
	s->workflow_look = NULL;
}
