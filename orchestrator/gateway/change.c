/* One change at a time. change_enter() alone changes a state. */
#include "orchestrator/gateway/change_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/service/ceiling.h"

static void finish(struct change *c)
{
	struct gateway *g = c->gateway;
	box_clear(g);
	evtimer_del(g->clock);
	if (c->done)
		c->done(c->arg, c);
	change_drop_first(g);
	change_begin_first(g);
}

void change_end(struct change *c, int status, const char *detail)
{
	c->status = status;
	c->detail = detail;
	change_enter(c, CHANGE_DONE);
}

/* ---- the beginning ---- */

/* Services that share a gateway leave each other's sandboxes alone. */
static bool is_kept_from(struct change *c)
{
	char whose[LIMIT_SANDBOX + 1];
	if (box_owner(c->gateway, c->id, whose) == BOX_UNREADABLE)
		change_end(c, 503, "whose it is can't be read");
	else if (strcmp(whose, c->owner) != 0)
		change_end(c, 409, "there is a sandbox of that id, and it is somebody else's");
	else
		return false;
	return true;
}

static void begin_put(struct change *c)
{
	struct gateway *g = c->gateway;
	char path[LIMIT_GATEWAY_PATH];
	const struct box b = {.id = c->id, .token = c->token, .owner = c->owner, .policy = c->policy};
	c->is_new = !box_is_there(g, c->id);
	if (!c->is_new && is_kept_from(c))
		return;
	box_staged_policy(g, path);
	if (!box_stage(g, &b))
		change_end(c, 503, "it can't be written");
	else if (c->policy && !judge_policy(g, slice_str(c->policy), path, &c->errors))
		change_end(c, 422, "the policy is no good");
	else
		change_enter(c, c->policy ? CHANGE_CHECKS : CHANGE_PRINTS);
}

static void begin_delete(struct change *c)
{
	if (!box_is_there(c->gateway, c->id))
		change_end(c, 404, "there is no such sandbox");
	else if (!is_kept_from(c))
		change_enter(c, CHANGE_RELOADS);
}

void change_begin_first(struct gateway *g)
{
	struct change *c = g->first;
	if (!c)
		return;
	box_clear(g);
	switch (c->kind) {
	case CHANGE_PUT:
		begin_put(c);
		return;
	case CHANGE_DELETE:
		begin_delete(c);
		return;
	case CHANGE_RELOAD:
		change_enter(c, CHANGE_RELOADS);
		return;
	}
}

/* ---- the proxy ---- */

static void look_soon(struct change *c)
{
	const struct timeval soon = loop_ms(LIMIT_GATEWAY_LOOK_MS);
	evtimer_add(c->gateway->clock, &soon);
}

static void set_clock(struct change *c, unsigned most_ms)
{
	c->until_us = clock_mono_us() + most_ms * 1000ull;
	look_soon(c);
}

static void reload(struct change *c)
{
	struct gateway *g = c->gateway;
	log_cursor(&g->log, log_end(&g->log), c->log);
	if (c->kind != CHANGE_RELOAD && !box_swap(g, c->id)) {
		say("sandbox %s: %s", c->id, strerror(errno));
		change_end(c, 503, "it can't be put into its place");
	} else {
		proxy_signal(g, SIGHUP);
		set_clock(c, LIMIT_GATEWAY_RELOAD_MS);
	}
}

static void restore(struct change *c)
{
	if (!box_swap(c->gateway, c->id)) {
		gateway_fail(c->gateway, "sandbox %s: what was before can't be put back: %s", c->id, strerror(errno));
		return;
	}
	if (c->brings_own)
		own_judge(c->gateway, c->id);
	proxy_signal(c->gateway, SIGHUP);
	set_clock(c, LIMIT_GATEWAY_RELOAD_MS);
}

/* The policy of --policy that the proxy has taken becomes ours. False: we have another one than it. */
static bool take_own(struct change *c)
{
	const enum own_taken taken = own_take(c->gateway);
	c->brings_own = c->brings_own || taken == OWN_NEW || taken == OWN_SHUTS;
	if (taken == OWN_UNREAD && c->is_again)
		gateway_fail(c->gateway, "what sandboxes may have is not known");
	else if (taken == OWN_UNREAD || taken == OWN_SHUTS)
		change_reload_behind(c, taken == OWN_UNREAD);
	return taken != OWN_UNREAD;
}

/* It was judged by the policy before, and is shut by the one that came with its own reload. */
static bool is_shut_by_now(struct change *c)
{
	char why[LIMIT_GATEWAY_WHY];
	const size_t n = c->kind == CHANGE_PUT ? box_why_shut(c->gateway, c->id, why, sizeof(why)) : 0;
	if (n > 0)
		words_add(&c->errors, "%.*s", (int)n, why);
	return n > 0;
}

/* A PUT holds by the policy of --policy too, so that has to be good; that somebody goes does not. */
static bool is_taken(const struct change *c, bool is_good, struct slice refused)
{
	if (c->kind == CHANGE_RELOAD)
		return true;
	while (refused.len > 0) {
		const struct slice id = slice_cut(&refused, ' ');
		if (slice_eq(id, SLICE("?")) || slice_eq(id, slice_str(c->id)))
			return false;
	}
	return is_good || c->kind == CHANGE_DELETE;
}

void change_reloaded(struct gateway *g, struct slice line)
{
	struct change *c = g->first;
	struct slice refused = line;
	bool is_good = slice_eq(slice_cut(&refused, ' '), SLICE("y"));
	if (!c || (c->state != CHANGE_RELOADS && c->state != CHANGE_RESTORES))
		return;
	is_good = is_good && take_own(c);
	if (c->state == CHANGE_RESTORES && c->errors.n > 0)
		change_end(c, 422, "the policy is no good");
	else if (c->state == CHANGE_RESTORES)
		change_end(c, 503, "the proxy did not take it; its messages say why");
	else if (!is_taken(c, is_good, refused) || is_shut_by_now(c))
		change_enter(c, CHANGE_RESTORES);
	else
		change_enter(c, CHANGE_SETTLES);
}

static void on_behind(struct gateway *g, uint64_t n)
{
	struct change *c = g->first;
	if (!c || c->state != CHANGE_SETTLES)
		return;
	if (n == 0)
		change_end(c, c->kind == CHANGE_PUT ? (c->is_new ? 201 : 200) : 204, NULL);
	else if (clock_mono_us() >= c->until_us)
		change_end(c, 503, "not all workers of the proxy have taken it yet");
	else
		look_soon(c);
}

/* ---- states ---- */

void change_enter(struct change *c, enum change_state next)
{
	if (!change_may_follow(c->state, next))
		abort();
	c->state = next;
	switch (next) {
	case CHANGE_WAITS:
	case CHANGE_STATES:
		return;
	case CHANGE_CHECKS:
		if (!change_check(c))
			change_end(c, 503, "the policy can't be checked now");
		return;
	case CHANGE_PRINTS:
		if (!change_print(c))
			change_end(c, 503, "the policy can't be looked at now");
		return;
	case CHANGE_RELOADS:
		reload(c);
		return;
	case CHANGE_RESTORES:
		restore(c);
		return;
	case CHANGE_SETTLES:
		set_clock(c, LIMIT_GATEWAY_SETTLE_MS);
		return;
	case CHANGE_DONE:
		finish(c);
		return;
	}
}

/* ---- the clock ---- */

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct gateway *g = arg;
	struct change *c = g->first;
	(void)fd, (void)what;
	if (g->state == GATEWAY_STARTS) {
		start_look(g);
		return;
	}
	if (!c)
		return;
	if (c->state == CHANGE_SETTLES) {
		if (!behind_ask(g, on_behind))
			on_behind(g, UINT64_MAX);
	} else if (clock_mono_us() >= c->until_us) {
		gateway_fail(g, "cage-proxy has not read its sandboxes in time");
	} else {
		look_soon(c);
	}
}

bool changes_open(struct gateway *g)
{
	const struct timeval soon = loop_ms(LIMIT_GATEWAY_LOOK_MS);
	g->clock = evtimer_new(loop_base(g->loop), on_clock, g);
	return g->clock && evtimer_add(g->clock, &soon) == 0;
}

void changes_close(struct gateway *g)
{
	while (g->first) {
		struct change *c = g->first;
		g->first = c->next;
		child_forget(g->children, c);
		change_free(c);
	}
	if (g->clock)
		event_free(g->clock);
	ceiling_free(&g->own);
}
