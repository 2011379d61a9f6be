/* What sandboxes leave: removed when they are deleted or their time is over. A removal that fails is written down and tried
 * again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/shipping.h"
#include "orchestrator/service/workflow.h"

struct removal {
	struct removal *next;
	struct service *service;
	char id[STORE_ID];
	const struct backend *backend; /* NULL: this build does not have it */
	int64_t tries;                 /* that have failed */
	enum { REMOVES_SANDBOX, REMOVES_ORPHAN } what;
	enum { REMOVAL_RUNS, REMOVAL_IS_TO_BE_STORED } state;
	char reason[32]; /* of DELETED */
};

/* ---- claims ---- */

void claim_take(struct service *s, struct claim *c)
{
	c->next = s->claims;
	s->claims = c;
}

void claim_drop(struct service *s, struct claim *c)
{
	struct claim **at = &s->claims;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
}

bool claim_is_held(const struct service *s, const char *id)
{
	for (const struct claim *c = s->claims; c; c = c->next)
		if (strcmp(c->id, id) == 0)
			return true;
	return false;
}

/* ---- removing ---- */

bool cleanup_has(const struct service *s, const char *id)
{
	for (const struct removal *r = s->removals; r; r = r->next)
		if (strcmp(r->id, id) == 0)
			return true;
	return false;
}

static void forget(struct removal *r)
{
	struct removal **at = &r->service->removals;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	free(r);
}

static void note_failure(const struct removal *r, const char *why)
{
	int64_t wait_s = LIMIT_SERVE_RETRY_S;
	for (int64_t i = 0; i < r->tries && wait_s < LIMIT_SERVE_RETRY_MAX_S; i++)
		wait_s *= 2;
	if (wait_s > LIMIT_SERVE_RETRY_MAX_S)
		wait_s = LIMIT_SERVE_RETRY_MAX_S;
	say("%s: what it left can't be removed: %s", r->id, why);
	if (r->what == REMOVES_SANDBOX &&
	    store_set_cleanup(r->service->store, r->id, r->tries + 1, (int64_t)clock_wall_us() + wait_s * 1000000,
			      why) != STORE_OK)
		say("%s: that could not be written down", r->id);
}

/* Its directory is gone. As long as that can't be stored, the next tick tries again. */
static void store_deleted(struct removal *r)
{
	struct row row = {0};
	enum store_result result = store_get(r->service->store, r->id, &row);
	if (result == STORE_OK) {
		row.state = DELETED;
		snprintf(row.reason, sizeof(row.reason), "%s", r->reason);
		result = store_enter(r->service->store, &row);
	}
	row_free(&row);
	if (result == STORE_FULL || result == STORE_FAILED)
		r->state = REMOVAL_IS_TO_BE_STORED;
	else
		forget(r);
}

static void store_those_that_are_gone(struct service *s)
{
	for (struct removal *r = s->removals, *next; r; r = next) {
		next = r->next;
		if (r->state == REMOVAL_IS_TO_BE_STORED)
			store_deleted(r);
	}
}

static void on_removed(void *arg, int status, struct slice said)
{
	struct removal *r = arg;
	(void)said;
	const char *why = child_failure(status);
	if (why)
		note_failure(r, why);
	if (!why && r->what == REMOVES_SANDBOX)
		store_deleted(r);
	else
		forget(r);
}

static void begin(struct service *s, const struct removal *what)
{
	char dir[BACKEND_PATH];
	struct removal *r = cleanup_has(s, what->id) ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return;
	*r = *what;
	r->service = s;
	r->next = s->removals;
	s->removals = r;
	service_dir(s, r->id, dir);
	const char *why = r->backend ? shipping_keep(s, r->id, dir) : "this build does not have its backend";
	if (why) {
		note_failure(r, why);
		forget(r);
	} else if (!backend_run(s->children, r->backend, BACKEND_REMOVE, dir, on_removed, r)) {
		forget(r); /* the next look tries again */
	}
}

void cleanup_drop(struct service *s, const struct backend *backend, const char *id)
{
	struct removal r = {.what = REMOVES_ORPHAN, .backend = backend};
	snprintf(r.id, sizeof(r.id), "%s", id);
	begin(s, &r);
}

/* ---- what is due ---- */

struct due {
	const struct service *service;
	struct removal list[LIMIT_SERVE_DUE];
	size_t n;
};

static void add_due(void *arg, const struct row *row)
{
	struct due *due = arg;
	if (due->n == sizeof(due->list) / sizeof(due->list[0]) || workflow_holds(due->service, row))
		return;
	struct removal *r = &due->list[due->n++];
	*r = (struct removal){.what = REMOVES_SANDBOX, .tries = row->cleanup_tries, .backend = backend_of(row->spec)};
	snprintf(r->id, sizeof(r->id), "%s", row->id);
	snprintf(r->reason, sizeof(r->reason), "%s", row->deleting ? "asked" : "expired");
}

void cleanup_now(struct service *s, const char *id)
{
	struct row row = {0};
	struct due due = {.service = s};
	if (store_get(s->store, id, &row) == STORE_OK && !state_is_open(row.state) && row.state != DELETED) {
		row.deleting = true;
		add_due(&due, &row);
	}
	row_free(&row);
	if (due.n > 0)
		begin(s, &due.list[0]);
}

void cleanup_look(struct service *s)
{
	struct due due = {.service = s};
	const int64_t now = (int64_t)clock_wall_us();
	if (s->stopping ||
	    store_list_due(s->store, now, now - (int64_t)s->config.retention_us, add_due, &due) != STORE_OK)
		return;
	for (size_t i = 0; i < due.n; i++)
		begin(s, &due.list[i]);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	(void)fd, (void)what;
	sandboxes_tick(s);
	workflows_tick(s);
	reserve_take(&s->reserve);
	store_those_that_are_gone(s);
	store_settle(s->store);
	cleanup_look(s);
}

bool cleanup_start(struct service *s)
{
	const struct timeval tick = loop_ms(LIMIT_SERVE_TICK_MS);
	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	return s->tick && event_add(s->tick, &tick) == 0 && sweep_start(s);
}

void cleanup_free(struct service *s)
{
	if (s->tick)
		event_free(s->tick);
	sweep_free(s);
	while (s->removals) {
		struct removal *r = s->removals;
		s->removals = r->next;
		child_forget(s->children, r);
		free(r);
	}
}
