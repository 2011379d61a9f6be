/* What sandboxes leave: removed when they are deleted or their time is over, and compared with what should be there. A removal
 * that fails is written down and tried again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/alerts.h"
#include "orchestrator/service/sandbox.h"

struct removal {
	struct removal *next;
	struct service *service;
	char id[STORE_ID];
	int64_t tries; /* that have failed */
	enum { REMOVES_SANDBOX, REMOVES_ORPHAN } what;
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

static bool is_being_removed(const struct service *s, const char *id)
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

/* In a process of its own. */
static int remove_dir(const char *dir)
{
	return backend_local.remove(dir) ? 0 : errno & 0x7f;
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

static void store_deleted(const struct removal *r)
{
	struct row row = {0};
	if (store_get(r->service->store, r->id, &row) != STORE_OK)
		return;
	row.state = DELETED;
	snprintf(row.reason, sizeof(row.reason), "%s", r->reason);
	if (store_enter(r->service->store, &row) != STORE_OK)
		say("%s: is gone, which can't be stored now", r->id); /* it is still due */
	row_free(&row);
}

static void on_removed(void *arg, int status, struct slice said)
{
	struct removal *r = arg;
	(void)said;
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!ok)
		note_failure(r, WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "it took too long");
	else if (r->what == REMOVES_SANDBOX)
		store_deleted(r);
	forget(r);
}

static void begin(struct service *s, const struct removal *what)
{
	char dir[BACKEND_PATH];
	struct removal *r = is_being_removed(s, what->id) ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return;
	*r = *what;
	r->service = s;
	r->next = s->removals;
	s->removals = r;
	service_dir(s, r->id, dir);
	const struct child_spec spec = {.function = remove_dir, .text = dir, .done = on_removed, .arg = r};
	if (!child_run(s->children, &spec))
		forget(r); /* the next look tries again */
}

void cleanup_drop(struct service *s, const char *id)
{
	struct removal r = {.what = REMOVES_ORPHAN};
	snprintf(r.id, sizeof(r.id), "%s", id);
	begin(s, &r);
}

/* ---- what is due ---- */

struct due {
	struct removal list[100];
	size_t n;
};

static void add_due(void *arg, const struct row *row)
{
	struct due *due = arg;
	if (due->n == sizeof(due->list) / sizeof(due->list[0]))
		return;
	struct removal *r = &due->list[due->n++];
	*r = (struct removal){.what = REMOVES_SANDBOX, .tries = row->cleanup_tries};
	snprintf(r->id, sizeof(r->id), "%s", row->id);
	snprintf(r->reason, sizeof(r->reason), "%s", row->deleting ? "asked" : "expired");
}

void cleanup_look(struct service *s)
{
	struct due due = {.n = 0};
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
	store_settle(s->store);
	cleanup_look(s);
}

/* ---- what there is against what should be ---- */

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
	static const struct link_events events = {nothing, nothing_ended, nothing};
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

static void compare(void *arg, const char *id)
{
	struct service *s = arg;
	struct row row = {0};
	char dir[BACKEND_PATH];
	if (claim_is_held(s, id) || sandbox_find(s, id) || is_being_removed(s, id))
		return;
	enum store_result result = store_get(s->store, id, &row);
	bool is_open = result == STORE_OK && state_is_open(row.state);
	bool is_orphan = result == STORE_NONE || (result == STORE_OK && row.state == DELETED);
	row_free(&row);
	if (is_open || (result != STORE_OK && result != STORE_NONE))
		return;
	service_dir(s, id, dir);
	if (!stop_keeper(s, dir) && is_orphan)
		cleanup_drop(s, id);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	(void)fd, (void)what;
	if (s->stopping)
		return;
	s->backend->list(s->config.state, compare, s);
	store_forget_old(s->store, (int64_t)clock_wall_us());
	store_forget_answers(s->store, (int64_t)clock_wall_us() - (int64_t)LIMIT_SERVE_KEY_S * 1000000);
}

bool cleanup_start(struct service *s)
{
	const struct timeval tick = loop_ms(LIMIT_SERVE_TICK_MS), sweep = loop_ms(LIMIT_SERVE_SWEEP_MS);
	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	s->sweep = event_new(s->base, -1, EV_PERSIST, on_sweep, s);
	if (!s->tick || !s->sweep || event_add(s->tick, &tick) != 0 || event_add(s->sweep, &sweep) != 0)
		return false;
	on_sweep(-1, 0, s);
	return true;
}

void cleanup_free(struct service *s)
{
	if (s->tick)
		event_free(s->tick);
	if (s->sweep)
		event_free(s->sweep);
	while (s->removals) {
		struct removal *r = s->removals;
		s->removals = r->next;
		child_forget(s->children, r);
		free(r);
	}
}
