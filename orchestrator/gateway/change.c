/* One change at a time. change_enter() alone changes a state. */
#include "orchestrator/gateway/change.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/wipe.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/intake.h"
#include "orchestrator/service/ceiling.h"

#define PROXY_SAYS_WRONG 2 /* exit code of cage-proxy --check */

static void change_enter(struct change *c, enum change_state next);

/* ---- their lives ---- */

struct change *change_new(struct gateway *g, enum change_kind kind, struct slice id)
{
	struct change *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->gateway = g;
	c->kind = kind;
	if (id.len > 0)
		memcpy(c->id, id.ptr, id.len);
	return c;
}

void change_free(struct change *c)
{
	wipe_free(c->token);
	free(c->policy);
	words_free(&c->errors);
	json_decref(c->env);
	free(c);
}

static void begin_next(struct gateway *g);

static void finish(struct change *c)
{
	struct gateway *g = c->gateway;
	box_clear(g);
	evtimer_del(g->clock);
	if (c->done)
		c->done(c->arg, c);
	g->first = c->next;
	if (!g->first)
		g->last = NULL;
	change_free(c);
	begin_next(g);
}

static void end_with(struct change *c, int status, const char *detail)
{
	c->status = status;
	c->detail = detail;
	change_enter(c, CHANGE_DONE);
}

/* ---- cage-proxy, asked about a policy ---- */

static void add_said(struct change *c, struct slice said)
{
	while (said.len > 0 && c->errors.n < LIMIT_GATEWAY_ERRORS) {
		struct slice line = slice_cut(&said, '\n');
		const char *at = memmem(line.ptr, line.len, "policy.yaml:", 12);
		if (at) /* where it lies aside is nobody's business */
			line = slice_from(line, (size_t)(at - line.ptr));
		if (line.len > 0)
			words_add(&c->errors, "%.*s", SLICE_FMT(line));
	}
}

static void on_checked(void *arg, int status, struct slice said)
{
	struct change *c = arg;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		change_enter(c, CHANGE_PRINTS);
		return;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
		words_add(&c->errors,
			  "policy.yaml: it takes more than %d s to compile: give it fewer or simpler patterns",
			  LIMIT_GATEWAY_CHECK_S);
		end_with(c, 422, "the policy is no good");
		return;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != PROXY_SAYS_WRONG) {
		end_with(c, 503, "the policy could not be checked");
		return;
	}
	add_said(c, said);
	end_with(c, 422, "the policy is no good");
}

static void on_printed(void *arg, int status, struct slice said)
{
	struct change *c = arg;
	c->env = json_object();
	while (said.len > 0 && c->env) {
		struct slice value = slice_cut(&said, '\n'), name = slice_cut(&value, '=');
		json_object_setn_new(c->env, name.ptr, name.len, json_stringn(value.ptr, value.len));
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && c->env)
		change_enter(c, CHANGE_RELOADS);
	else
		end_with(c, 503, "the placeholders of the policy can't be told");
}

static bool ask_proxy(struct change *c, const char *what, child_done *done)
{
	struct gateway *g = c->gateway;
	char path[LIMIT_GATEWAY_PATH];
	struct words argv = {0};
	box_staged_policy(g, path);
	words_add(&argv, "cage-proxy");
	words_add(&argv, "--policy");
	words_add(&argv, "%s", c->policy ? path : g->options->policy);
	words_add(&argv, "--sandbox");
	words_add(&argv, "%s", c->id);
	proxy_add_places(g, &argv);
	words_add(&argv, "%s", what);
	const struct child_spec spec = {.program = "cage-proxy",
					.argv = argv.list,
					.envp = environ,
					.hears_errors = done == on_checked,
					.most_ms = LIMIT_GATEWAY_CHECK_MS,
					.most_cpu_s = LIMIT_GATEWAY_CHECK_S,
					.done = done,
					.arg = c};
	const bool ok = !argv.failed && child_run(g->children, &spec);
	words_free(&argv);
	return ok;
}

/* ---- the beginning ---- */

/* Services that share a gateway leave each other's sandboxes alone. */
static bool is_anothers(const struct change *c)
{
	char whose[LIMIT_SANDBOX + 1];
	box_owner(c->gateway, c->id, whose);
	return strcmp(whose, c->owner) != 0;
}

static void begin_put(struct change *c)
{
	struct gateway *g = c->gateway;
	char path[LIMIT_GATEWAY_PATH];
	const struct box b = {.id = c->id, .token = c->token, .owner = c->owner, .policy = c->policy};
	c->is_new = !box_is_there(g, c->id);
	box_staged_policy(g, path);
	if (!c->is_new && is_anothers(c))
		end_with(c, 409, "there is a sandbox of that id, and it is somebody else's");
	else if (!box_stage(g, &b))
		end_with(c, 503, "it can't be written");
	else if (c->policy && !judge_policy(g, slice_str(c->policy), path, &c->errors))
		end_with(c, 422, "the policy is no good");
	else
		change_enter(c, c->policy ? CHANGE_CHECKS : CHANGE_PRINTS);
}

static void begin_delete(struct change *c)
{
	if (!box_is_there(c->gateway, c->id))
		end_with(c, 404, "there is no such sandbox");
	else if (is_anothers(c))
		end_with(c, 409, "it is somebody else's");
	else
		change_enter(c, CHANGE_RELOADS);
}

static void begin_next(struct gateway *g)
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

bool change_ask(struct change *c)
{
	struct gateway *g = c->gateway;
	size_t n = 0;
	for (struct change *at = g->first; at; at = at->next)
		n++;
	if (n >= LIMIT_GATEWAY_CHANGES)
		return false;
	if (g->last)
		g->last->next = c;
	else
		g->first = c;
	g->last = c;
	if (g->first == c)
		begin_next(g);
	return true;
}

/* Not the first one, which is being made. */
static void take_out(struct change *c)
{
	struct gateway *g = c->gateway;
	for (struct change *at = g->first; at; at = at->next)
		if (at->next == c) {
			at->next = c->next;
			if (g->last == c)
				g->last = at;
			return;
		}
}

void change_forget(struct change *c)
{
	c->done = NULL;
	if (c->kind != CHANGE_PUT || c->state != CHANGE_WAITS)
		return;
	take_out(c);
	change_free(c);
}

/* ---- the proxy ---- */

static void set_clock(struct change *c, unsigned most_ms)
{
	const struct timeval soon = loop_ms(LIMIT_GATEWAY_LOOK_MS);
	c->until_us = clock_mono_us() + most_ms * 1000ull;
	evtimer_add(c->gateway->clock, &soon);
}

static void reload(struct change *c)
{
	struct gateway *g = c->gateway;
	log_cursor(&g->log, log_end(&g->log), c->log);
	if (c->kind != CHANGE_RELOAD && !box_swap(g, c->id)) {
		say("sandbox %s: %s", c->id, strerror(errno));
		end_with(c, 503, "it can't be put into its place");
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
	proxy_signal(c->gateway, SIGHUP);
	set_clock(c, LIMIT_GATEWAY_RELOAD_MS);
}

/* Next, and however many wait: who was shut is not to have what it had meanwhile. */
static void reload_behind(struct change *c)
{
	struct gateway *g = c->gateway;
	struct change *again = change_new(g, CHANGE_RELOAD, SLICE_NONE);
	if (!again) {
		gateway_fail(g, "no memory to shut sandboxes");
		return;
	}
	again->next = c->next;
	c->next = again;
	if (g->last == c)
		g->last = again;
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
	const bool is_good = slice_eq(slice_cut(&refused, ' '), SLICE("y"));
	if (!c || (c->state != CHANGE_RELOADS && c->state != CHANGE_RESTORES))
		return;
	if (is_good && own_take(g))
		reload_behind(c);
	if (c->state == CHANGE_RESTORES)
		end_with(c, 503, "the proxy did not take it; its messages say why");
	else if (!is_taken(c, is_good, refused))
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
		end_with(c, c->kind == CHANGE_PUT ? (c->is_new ? 201 : 200) : 204, NULL);
	else if (clock_mono_us() >= c->until_us)
		end_with(c, 503, "not all workers of the proxy have taken it yet");
	else
		set_clock(c, (unsigned)((c->until_us - clock_mono_us()) / 1000));
}

/* ---- states ---- */

static void change_enter(struct change *c, enum change_state next)
{
	if (!change_may_follow(c->state, next))
		abort();
	c->state = next;
	switch (next) {
	case CHANGE_WAITS:
	case CHANGE_STATES:
		return;
	case CHANGE_CHECKS:
		if (!ask_proxy(c, "--check", on_checked))
			end_with(c, 503, "the policy can't be checked now");
		return;
	case CHANGE_PRINTS:
		if (!ask_proxy(c, "--print-env", on_printed))
			end_with(c, 503, "the policy can't be looked at now");
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

/* ---- the clock, also of the start ---- */

static void on_first_answer(struct gateway *g, uint64_t n)
{
	const struct timeval soon = loop_ms(LIMIT_GATEWAY_LOOK_MS);
	if (g->state != GATEWAY_STARTS)
		return;
	if (n == UINT64_MAX)
		evtimer_add(g->clock, &soon);
	else if (intake_serve(g))
		gateway_enter(g, GATEWAY_SERVES);
	else
		gateway_fail(g, "the intake can't be opened");
}

static void await_proxy(struct gateway *g)
{
	static uint64_t until_us;
	if (until_us == 0)
		until_us = clock_mono_us() + LIMIT_GATEWAY_START_MS * 1000ull +
			   boxes_count(g) * LIMIT_GATEWAY_CHECK_S * 1000000ull;
	if (clock_mono_us() >= until_us)
		gateway_fail(g, "cage-proxy does not answer");
	else if (!behind_ask(g, on_first_answer))
		on_first_answer(g, UINT64_MAX);
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct gateway *g = arg;
	struct change *c = g->first;
	(void)fd, (void)what;
	if (g->state == GATEWAY_STARTS) {
		await_proxy(g);
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
		set_clock(c, (unsigned)((c->until_us - clock_mono_us()) / 1000));
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
