/* How many rooms stand, which of them goes to whom, and when others are made. */
#include "orchestrator/keeper/result.h"
#include "orchestrator/service/warm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/warm_private.h"

/* ---- counting ---- */

static size_t count(const struct warm_pool *p, bool standing)
{
	size_t n = 0;
	for (const struct warm_room *r = p->rooms; r; r = r->next)
		n += (r->state == WARM_STANDING) == standing;
	return n;
}

static size_t all_in_making(const struct warm *w)
{
	size_t n = 0;
	for (const struct warm_pool *p = w->pools; p; p = p->next)
		n += count(p, false);
	return n;
}

/* Who asks needs no token, so that no profile is named. */
json_t *warm_json(const struct service *s)
{
	size_t wanted = 0, standing = 0;
	for (const struct warm_pool *p = s->warm ? s->warm->pools : NULL; p; p = p->next) {
		wanted += p->wanted;
		standing += count(p, true);
	}
	return json_pack("{s:I, s:I}", "wanted", (json_int_t)wanted, "standing", (json_int_t)standing);
}

/* ---- filling up ---- */

static void look_in(struct service *s, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	evtimer_add(s->warm->clock, &time);
}

/* Few at a time, so that they take little from those that somebody waits for. */
static void fill(struct service *s)
{
	const uint64_t now_us = clock_mono_us();
	size_t making = all_in_making(s->warm);
	for (struct warm_pool *p = s->warm->pools; p; p = p->next) {
		size_t there = count(p, true) + count(p, false);
		for (; there < p->wanted && making < LIMIT_SERVE_WARM_MAKING && now_us >= p->not_before_us; there++) {
			if (!warm_make(p))
				return;
			making++;
		}
	}
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	(void)fd, (void)what;
	if (!s->stopping && reserve_has_room(&s->reserve))
		fill(s);
	look_in(s, LIMIT_SERVE_TICK_MS);
}

void warm_stands(struct warm_room *r)
{
	r->pool->failures = 0;
	look_in(r->pool->service, 0);
}

static uint64_t pause_of(unsigned failures)
{
	uint64_t ms = LIMIT_SERVE_WARM_RETRY_MS;
	for (unsigned i = 1; i < failures && ms < LIMIT_SERVE_WARM_RETRY_MAX_MS; i++)
		ms *= 2;
	return ms < LIMIT_SERVE_WARM_RETRY_MAX_MS ? ms : LIMIT_SERVE_WARM_RETRY_MAX_MS;
}

/* One that dies again and again is not made again and again without a pause. */
void warm_failed(struct warm_room *r, const char *why)
{
	struct warm_pool *p = r->pool;
	const char *detail = json_string_value(json_object_get(json_array_get(r->errors, 0), "detail"));
	struct result result;
	if (!why && !detail && result_read(r->dir, &result) && result.message[0])
		why = result.message;
	p->failures++;
	const uint64_t ms = pause_of(p->failures);
	p->not_before_us = clock_mono_us() + ms * 1000;
	say("%s: a room that stands ready for %s is lost%s%s; another is made in %llu s", r->claim.id, p->name,
	    why || detail ? ": " : "",
	    why      ? why
	    : detail ? detail
		     : "",
	    (unsigned long long)ms / 1000);
	warm_drop(r);
}

/* ---- giving ---- */

static struct warm_pool *pool_for(const struct service *s, const struct warm_wish *wish)
{
	const char *name = json_string_value(json_object_get(wish->spec, "profile"));
	for (struct warm_pool *p = s->warm && name ? s->warm->pools : NULL; p; p = p->next)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

/* The policy, or the value of a secret, is another than when they were made: nobody may have them any more. */
static void drop_stale(struct warm_pool *p, const char *content)
{
	for (struct warm_room *r = p->rooms, *next; r; r = next) {
		next = r->next;
		if (r->state == WARM_STANDING && strcmp(r->content, content) != 0)
			warm_drop(r);
	}
}

/* The oldest. */
static struct warm_room *choose(const struct warm_pool *p)
{
	struct warm_room *found = NULL;
	for (struct warm_room *r = p->rooms; r; r = r->next)
		if (r->state == WARM_STANDING)
			found = r;
	return found;
}

static struct warm_room *find(struct service *s, const struct warm_wish *wish)
{
	char content[WARM_CONTENT];
	struct warm_pool *p = pool_for(s, wish);
	json_t *shape = p ? warm_shape(wish->full, wish->spec) : NULL;
	bool is_same = shape && json_equal(shape, p->shape);
	json_decref(shape);
	if (!is_same || !warm_content(&s->config, wish->spec, wish->facts, content))
		return NULL;
	drop_stale(p, content);
	return warm_fits(p, wish->spec) && sandbox_has_turn(s, wish->spec) ? choose(p) : NULL;
}

static bool move_files(const char *from, const char *to)
{
	char a[BACKEND_PATH + 8], b[BACKEND_PATH + 8];
	snprintf(a, sizeof(a), "%s/files", from);
	snprintf(b, sizeof(b), "%s/files", to);
	return rename(a, b) == 0;
}

bool warm_give(struct service *s, const struct warm_wish *wish, struct claim *claim, char dir[BACKEND_PATH])
{
	struct warm_room *r = find(s, wish);
	char own[STORE_ID];
	if (!r)
		return false;
	if (!move_files(dir, r->dir)) {
		warm_drop(r);
		return false;
	}
	json_object_set_new(wish->spec, "warm", json_true());
	memcpy(own, claim->id, sizeof(own));
	memcpy(claim->id, r->claim.id, sizeof(own));
	memcpy(dir, r->dir, sizeof(r->dir));
	warm_forget(r);
	cleanup_drop(s, backend_of(wish->spec), own);
	look_in(s, LIMIT_SERVE_WARM_REST_MS);
	return true;
}

/* ---- the beginning and the end ---- */

static bool add_pool(struct service *s, const char *name, size_t wanted)
{
	struct warm_pool *p = calloc(1, sizeof(*p));
	json_t *body = json_pack("{s:s}", "profile", name), *errors = json_array();
	if (!p)
		goto out;
	*p = (struct warm_pool){.next = s->warm->pools, .service = s, .name = name, .wanted = wanted};
	s->warm->pools = p;
	p->full = body && errors ? create_with_profile(&s->config, body, errors) : NULL;
	p->spec = p->full ? create_spec(&s->config, p->full, errors) : NULL;
	p->shape = p->spec ? warm_shape(p->full, p->spec) : NULL;
out:
	json_decref(body);
	json_decref(errors);
	return p && p->shape;
}

bool warm_start(struct service *s)
{
	const char *name;
	json_t *wanted;
	if (json_object_size(s->config.warm) == 0)
		return true;
	s->warm = calloc(1, sizeof(*s->warm));
	if (!s->warm)
		return false;
	s->warm->clock = evtimer_new(s->base, on_clock, s);
	bool ok = s->warm->clock;
	json_object_foreach(s->config.warm, name, wanted)
	{
		if (!pools_has(&s->config, name))
			ok = ok && add_pool(s, name, (size_t)json_integer_value(wanted));
	}
	if (ok)
		look_in(s, 0);
	else
		say("no memory for rooms that stand ready");
	return ok;
}

/* One that does not answer yet is known by its number, as long as it is a child of ours that runs. */
static pid_t keeper_of(const struct warm_room *r)
{
	if (r->link)
		return link_keeper(r->link);
	return r->keeper > 0 && waitpid(r->keeper, NULL, WNOHANG) == 0 ? r->keeper : 0;
}

/* Nobody will ask for it: the keeper ends it, and the next sweep removes what is left. */
static void leave(struct warm_room *r)
{
	pid_t keeper = keeper_of(r);
	warm_forget(r);
	if (keeper > 1)
		kill(keeper, SIGTERM);
}

static void pool_free(struct warm_pool *p)
{
	while (p->rooms)
		leave(p->rooms);
	json_decref(p->full);
	json_decref(p->spec);
	json_decref(p->shape);
	free(p);
}

void warm_free(struct service *s)
{
	if (!s->warm)
		return;
	while (s->warm->pools) {
		struct warm_pool *p = s->warm->pools;
		s->warm->pools = p->next;
		pool_free(p);
	}
	if (s->warm->clock)
		event_free(s->warm->clock);
	free(s->warm);
	s->warm = NULL;
}
