/* The sandboxes that have not come to their end. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/service/blocked.h"
#include "orchestrator/service/sandbox.h"

struct sandbox *sandbox_of_place(const struct queued *q)
{
	return (struct sandbox *)((char *)q - offsetof(struct sandbox, place));
}

static const char *label_of(const struct queued *q, const char *name)
{
	return json_string_value(json_object_get(json_object_get(sandbox_of_place(q)->row.spec, "labels"), name));
}

/* There may be many that wait, and each request asks for one. */
static size_t bucket_of(const char *id)
{
	size_t hash = 5381;
	for (; *id; id++)
		hash = hash * 33 + (unsigned char)*id;
	return hash % LIMIT_SERVE_BUCKETS;
}

static void put_in(struct sandbox *b)
{
	struct sandbox **bucket = &b->service->by_id[bucket_of(b->row.id)];
	b->same_bucket = *bucket;
	*bucket = b;
	b->next = b->service->sandboxes;
	b->service->sandboxes = b;
}

static void take_out(struct sandbox *b)
{
	struct sandbox **at = &b->service->sandboxes, **same = &b->service->by_id[bucket_of(b->row.id)];
	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
	while (*same && *same != b)
		same = &(*same)->same_bucket;
	if (*same)
		*same = b->same_bucket;
}

static void free_now(struct sandbox *b)
{
	sandbox_drop_reload(b);
	child_forget(b->service->children, b);
	if (b->clock)
		event_free(b->clock);
	link_close(&b->link);
	row_free(&b->row);
	blocked_free(&b->blocked);
	free(b->dir);
	free(b->result);
	free(b);
}

/* Not within a callback of its link: by its clock. */
void sandbox_free_later(struct sandbox *b)
{
	struct service *s = b->service;
	char id[STORE_ID];
	const bool is_doomed = b->row.deleting;
	memcpy(id, b->row.id, sizeof(id));
	take_out(b);
	free_now(b);
	if (is_doomed)
		cleanup_now(s, id);
	sandboxes_pump(s);
	cleanup_look(s);
}

static struct sandbox *make(struct service *s, struct row *row)
{
	char dir[BACKEND_PATH];
	struct sandbox *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	service_dir(s, row->id, dir);
	b->service = s;
	b->dir = strdup(dir);
	b->clock = evtimer_new(s->base, sandbox_on_clock, b);
	if (!b->clock || !b->dir) {
		free_now(b);
		return NULL;
	}
	b->place.label = label_of;
	b->row = *row;
	*row = (struct row){0};
	put_in(b);
	return b;
}

struct sandbox *sandbox_add(struct service *s, struct row *row)
{
	struct sandbox *b = make(s, row);
	if (!b)
		return NULL;
	if (!queue_add(&s->queue, &b->place)) {
		take_out(b);
		*row = b->row;
		b->row = (struct row){0};
		free_now(b);
		return NULL;
	}
	sandbox_enter(b, PHASE_WAITING);
	return b;
}

void sandbox_withdraw(struct sandbox *b)
{
	queue_remove(&b->service->queue, &b->place);
	take_out(b);
	free_now(b);
}

struct sandbox *sandbox_resume(struct service *s, struct row *row)
{
	if (row->state == QUEUED)
		return sandbox_add(s, row);
	struct sandbox *b = make(s, row);
	if (!b)
		return NULL;
	if (!queue_place(&s->queue, &b->place)) {
		take_out(b);
		free_now(b);
		return NULL;
	}
	b->stop_us = b->row.ending[0] ? clock_mono_us() : 0;
	if (b->row.state == CREATING && !sandbox_has(b, "lock")) { /* its keeper was not started */
		sandbox_start(b);
		return b;
	}
	sandbox_enter(b, PHASE_STARTING);
	sandbox_set_clock(b, 0);
	return b;
}

bool sandbox_has_turn(struct service *s, json_t *spec)
{
	struct sandbox probe = {.place.label = label_of, .row.spec = spec};
	return queue_has_turn(&s->queue, &probe.place, clock_mono_us());
}

struct sandbox *sandbox_find(const struct service *s, const char *id)
{
	for (struct sandbox *b = s->by_id[bucket_of(id)]; b; b = b->same_bucket)
		if (b->phase != PHASE_OVER && strcmp(b->row.id, id) == 0)
			return b;
	return NULL;
}

void sandboxes_free(struct service *s)
{
	while (s->sandboxes) {
		struct sandbox *b = s->sandboxes;
		s->sandboxes = b->next;
		free_now(b);
	}
	queue_free(&s->queue);
	if (s->pump)
		event_free(s->pump);
	s->pump = NULL;
}
