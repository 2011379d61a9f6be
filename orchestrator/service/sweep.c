/* What there is against what should be: each backend is asked what it has, in a process of its own, and what nobody knows of is
 * ended and removed. A list may be long, so it is gone through in pieces, with the loop going on between them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/sandbox.h"

struct sweep {
	enum sweep_state { SWEEP_RESTS, SWEEP_ASKS, SWEEP_COMPARES } state;
	struct event *clock;
	size_t backend; /* that is asked, or whose list this is */
	char *names;    /* owned: lines of ids; NULL: none */
	struct slice rest;
	size_t asked; /* keepers that were asked to end: what they leave is looked at again soon */
};

/* It asks, compares what it was told, and rests; or it can't ask now. */
static void enter(struct sweep *w, enum sweep_state next)
{
	if (next != SWEEP_RESTS ? next != w->state + 1 : w->state == SWEEP_RESTS)
		abort();
	w->state = next;
}

/* ---- one of them ---- */

static void nothing_ready(void *arg, bool has_begun)
{
	(void)arg, (void)has_begun;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void nothing_ended(void *arg, struct job_end end)
{
	(void)arg, (void)end;
}

/* A keeper that nobody knows of, or whose sandbox counts as ended. True: there was one. */
static bool stop_keeper(struct service *s, const char *dir)
{
	static const struct link_events events = {nothing_ready, nothing_ended, nothing, NULL};
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/socket", dir);
	struct link *l = link_open(s->base, path, &events, NULL);
	if (!l)
		return false;
	pid_t keeper = link_keeper(l);
	link_close(&l);
	say("%s: a keeper without a sandbox is asked to end", dir);
	if (keeper > 1)
		kill(keeper, SIGTERM);
	return true;
}

static void compare(struct service *s, const char *id)
{
	struct row row = {0};
	char dir[BACKEND_PATH];
	if (claim_is_held(s, id) || sandbox_find(s, id) || cleanup_has(s, id))
		return;
	enum store_result result = store_get(s->store, id, &row);
	bool is_open = result == STORE_OK && state_is_open(row.state);
	bool is_orphan = result == STORE_NONE || (result == STORE_OK && row.state == DELETED);
	row_free(&row);
	if (is_open || (result != STORE_OK && result != STORE_NONE))
		return;
	service_dir(s, id, dir);
	if (stop_keeper(s, dir))
		s->sweep->asked++;
	else if (is_orphan)
		cleanup_drop(s, backend_of_dir(dir), id);
}

/* ---- all of them ---- */

static void sweep_in(struct sweep *w, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	evtimer_add(w->clock, &time);
}

static void drop_names(struct sweep *w)
{
	free(w->names);
	w->names = NULL;
	w->rest = SLICE_NONE;
}

static void finish(struct service *s)
{
	const int64_t now = (int64_t)clock_wall_us();
	drop_names(s->sweep);
	s->sweep->backend = 0;
	store_forget_old(s->store, now - (int64_t)s->config.records_us, now - (int64_t)s->config.usage_us);
	store_forget_answers(s->store, now - (int64_t)LIMIT_SERVE_KEY_S * 1000000);
	sweep_in(s->sweep, s->sweep->asked ? LIMIT_SERVE_RETRY_S * 1000 : LIMIT_SERVE_SWEEP_MS);
	s->sweep->asked = 0;
}

static void compare_some(struct service *s)
{
	struct sweep *w = s->sweep;
	char id[STORE_ID];
	for (size_t i = 0; i < LIMIT_SERVE_SWEEP_PIECE && w->rest.len > 0; i++) {
		struct slice line = slice_cut(&w->rest, '\n');
		if (!sandbox_id_is_good(line))
			continue;
		snprintf(id, sizeof(id), "%.*s", SLICE_FMT(line));
		compare(s, id);
	}
	if (w->rest.len == 0) {
		drop_names(w);
		enter(w, SWEEP_RESTS);
		w->backend++;
	}
	sweep_in(w, 0);
}

/* A list that is not whole is good for what is in it: nothing is taken for gone because it is not. */
static void on_listed(void *arg, int status, struct slice said)
{
	struct service *s = arg;
	struct sweep *w = s->sweep;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		say("what there is of %s can't be listed", backend_at(w->backend)->name);
	while (said.len > 0 && said.ptr[said.len - 1] != '\n') /* a name that was cut is none */
		said.len--;
	w->names = said.len > 0 ? malloc(said.len) : NULL;
	if (w->names) {
		memcpy(w->names, said.ptr, said.len);
		w->rest = slice_of(w->names, said.len);
	}
	enter(w, SWEEP_COMPARES);
	compare_some(s);
}

static void ask(struct service *s)
{
	struct sweep *w = s->sweep;
	enter(w, SWEEP_ASKS);
	if (backend_run(s->children, backend_at(w->backend), BACKEND_SWEEP, s->config.state, on_listed, s))
		return;
	enter(w, SWEEP_RESTS);
	sweep_in(w, LIMIT_SERVE_TICK_MS);
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	(void)fd, (void)what;
	if (s->stopping)
		return;
	if (s->sweep->state == SWEEP_COMPARES)
		compare_some(s);
	else if (backend_at(s->sweep->backend))
		ask(s);
	else
		finish(s);
}

bool sweep_start(struct service *s)
{
	s->sweep = calloc(1, sizeof(*s->sweep));
	if (!s->sweep)
		return false;
	s->sweep->clock = evtimer_new(s->base, on_clock, s);
	if (!s->sweep->clock)
		return false;
	sweep_in(s->sweep, 0);
	return true;
}

void sweep_free(struct service *s)
{
	if (!s->sweep)
		return;
	child_forget(s->children, s);
	if (s->sweep->clock)
		event_free(s->sweep->clock);
	drop_names(s->sweep);
	free(s->sweep);
	s->sweep = NULL;
}
