/* Making a room that stands: a directory with the policy of the profile, which is checked as that of a create is, and a keeper. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/net/loop.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/unique.h"
#include "orchestrator/service/warm_private.h"

static void enter(struct warm_room *r, enum warm_state next, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	r->state = next;
	r->since_us = clock_mono_us();
	evtimer_add(r->clock, &time);
}

/* Never within a callback of its link or its child: by its clock. */
static void lose(struct warm_room *r)
{
	enter(r, WARM_LOST, 0);
}

/* ---- the keeper ---- */

static void nothing_ready(void *arg, bool has_begun)
{
	(void)arg, (void)has_begun;
}

static void nothing_ended(void *arg, struct job_end end)
{
	(void)arg, (void)end;
}

static void on_closed(void *arg)
{
	lose(arg);
}

static void on_stands(void *arg)
{
	struct warm_room *r = arg;
	const uint64_t age_us = r->pool->service->config.warm_age_us;
	if (r->state != WARM_LINKED)
		return;
	enter(r, WARM_STANDING, (unsigned)(age_us / 1000));
	warm_stands(r);
}

static void try_to_link(struct warm_room *r)
{
	static const struct link_events events = {nothing_ready, nothing_ended, on_closed, on_stands};
	const struct timeval soon = loop_ms(LIMIT_SERVE_CONNECT_MS);
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/socket", r->dir);
	r->link = link_open(r->pool->service->base, path, &events, r);
	if (r->link)
		enter(r, WARM_LINKED, LIMIT_SERVE_CREATING_MS);
	else if (clock_mono_us() - r->since_us < (uint64_t)LIMIT_SERVE_CREATING_MS * 1000)
		evtimer_add(r->clock, &soon);
	else
		warm_failed(r, "its keeper does not answer");
}

static void start(struct warm_room *r)
{
	struct warm_pool *p = r->pool;
	const char *why;
	const uint64_t age_s = p->service->config.warm_age_us / 1000000;
	const struct keeper_wish wish = {
		.id = r->claim.id,
		.dir = r->dir,
		.spec = p->spec,
		.life_s = age_s + (uint64_t)json_integer_value(json_object_get(p->spec, "lifetime_seconds")),
		.stand_ms = (age_s + LIMIT_SERVE_BACKSTOP_S) * 1000};
	if (warm_content(&p->service->config, p->spec, &r->facts, r->content))
		r->keeper = keeper_start(p->service, &wish, &why);
	if (r->keeper <= 0)
		lose(r);
	else
		enter(r, WARM_STARTING, LIMIT_SERVE_CONNECT_MS);
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct warm_room *r = arg;
	(void)fd, (void)what;
	switch (r->state) {
	case WARM_STARTING:
		try_to_link(r);
		return;
	case WARM_STANDING:
		warm_drop(r); /* it is old */
		return;
	case WARM_LINKED:
		warm_failed(r, "its room was not ready in time");
		return;
	case WARM_CHECKING:
	case WARM_LOST:
		warm_failed(r, NULL);
		return;
	}
}

/* ---- the policy ---- */

static void on_tried(void *arg, int status, struct slice said)
{
	struct warm_room *r = arg;
	char path[BACKEND_PATH + 16];
	snprintf(path, sizeof(path), "%s/policy.yaml", r->dir);
	if (policy_verdict(status, said, path, r->errors).status == 0)
		start(r);
	else
		lose(r);
}

static void try_policy(struct warm_room *r)
{
	struct service *s = r->pool->service;
	char path[BACKEND_PATH + 16];
	const struct policy_trial trial = {.path = path,
					   .facts = &r->facts,
					   .secrets = json_object_get(r->pool->spec, "secrets"),
					   .done = on_tried,
					   .arg = r};
	snprintf(path, sizeof(path), "%s/policy.yaml", r->dir);
	if (policy_try(&s->config, s->children, &trial, r->errors) != TRIAL_BEGAN)
		lose(r);
}

static void on_taken(void *arg, int status, struct slice said)
{
	struct warm_room *r = arg;
	if (policy_taken(status, said, &r->facts, r->errors) == 0)
		try_policy(r);
	else
		lose(r);
}

static bool write_policy(struct warm_room *r, enum policy_kind *kind)
{
	const struct config *c = &r->pool->service->config;
	char path[BACKEND_PATH + 16];
	char *text = policy_text(c, r->pool->full, kind, r->errors);
	snprintf(path, sizeof(path), "%s/policy.yaml", r->dir);
	bool ok =
		text && policy_write(r->dir, "policy.yaml", text) && policy_check(c, path, *kind, &r->facts, r->errors);
	free(text);
	return ok;
}

static void begin(struct warm_room *r)
{
	struct service *s = r->pool->service;
	enum policy_kind kind = POLICY_GIVEN;
	const char *name = json_string_value(json_object_get(json_object_get(r->pool->full, "policy"), "name"));
	enter(r, WARM_CHECKING, LIMIT_SERVE_CREATING_MS);
	bool ok = mkdir(r->dir, 0700) == 0 &&
		  (name ? policy_take(&s->config, s->children, name, r->dir, on_taken, r) : write_policy(r, &kind));
	if (!ok)
		lose(r);
	else if (!name && kind == POLICY_MADE)
		start(r);
	else if (!name)
		try_policy(r);
}

/* ---- in and out ---- */

bool warm_make(struct warm_pool *p)
{
	struct warm_room *r = calloc(1, sizeof(*r));
	if (!r)
		return false;
	r->pool = p;
	r->errors = json_array();
	r->clock = evtimer_new(p->service->base, on_clock, r);
	if (!r->clock || !r->errors) {
		json_decref(r->errors);
		free(r);
		return false;
	}
	unique_text("sb-", r->claim.id, sizeof(r->claim.id));
	service_dir(p->service, r->claim.id, r->dir);
	claim_take(p->service, &r->claim);
	r->next = p->rooms;
	p->rooms = r;
	begin(r);
	return true;
}

void warm_forget(struct warm_room *r)
{
	struct service *s = r->pool->service;
	struct warm_room **at = &r->pool->rooms;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	claim_drop(s, &r->claim);
	child_forget(s->children, r);
	link_close(&r->link);
	policy_facts_free(&r->facts);
	json_decref(r->errors);
	event_free(r->clock);
	free(r);
}

void warm_drop(struct warm_room *r)
{
	struct service *s = r->pool->service;
	const struct backend *backend = backend_of(r->pool->spec);
	char id[STORE_ID];
	memcpy(id, r->claim.id, sizeof(id));
	warm_forget(r);
	cleanup_drop(s, backend, id);
}
