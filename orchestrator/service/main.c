/* cage-serve: the service behind `cage serve`. One process, one loop; what a sandbox needs is done by its keeper, which outlives
 * us. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "core/proc/process.h"
#include "orchestrator/service/access.h"
#include "orchestrator/service/alerts.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/call.h"
#include "orchestrator/service/http.h"
#include "orchestrator/service/maker.h"
#include "orchestrator/service/options.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/shipping.h"
#include "orchestrator/service/state_dir.h"
#include "orchestrator/service/warm.h"
#include "orchestrator/service/workflow.h"

#define SOCKET_PATH 107 /* bytes of the path of a unix socket */
#define LONGEST_NAME 30 /* "sandboxes/sb-xxxxxxxxxxxxxxxx/" and "socket", less the slashes */

/* ---- the state directory ---- */

static bool make_dir(const char *state, const char *name)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/%s", state, name);
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return true;
	say("%s: %s", path, strerror(errno));
	return false;
}

/* Held to our end: two services on one state would each take the other's sandboxes for its own. */
static bool take_lock(const char *state)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/lock", state);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	say(errno == EWOULDBLOCK ? "%s: another service has it" : "%s: can't be locked", path);
	return false;
}

static void make_room(void *arg)
{
	reserve_give(arg);
}

/* Backends that make something elsewhere can do nothing without it. */
static bool has_word(const struct config *c)
{
	char id[STATE_DIR_ID];
	bool is_needed = false;
	for (size_t i = 0; i < c->n_backends; i++)
		is_needed = is_needed || c->backends[i]->maker;
	return !is_needed || state_dir_id(c->state, id);
}

static bool open_state(struct service *s)
{
	char path[BACKEND_PATH];
	const char *state = s->config.state;
	if (strlen(state) + LONGEST_NAME + 8 > SOCKET_PATH) {
		say("%s: the path is too long for the sockets of sandboxes in it", state);
		return false;
	}
	if (!state_dir_make(state) || !make_dir(state, "sandboxes") || !make_dir(state, "workflows") ||
	    !make_dir(state, "ca") || !take_lock(state) || !has_word(&s->config))
		return false;
	reserve_open(&s->reserve, state);
	snprintf(path, sizeof(path), "%s/cage.db", state);
	s->store = store_open(path);
	if (!s->store && !reserve_has_room(&s->reserve) && reserve_give(&s->reserve))
		s->store = store_open(path);
	if (s->store)
		store_on_full(s->store, make_room, &s->reserve);
	return s->store;
}

/* ---- what there was ---- */

struct resumed {
	struct row *rows;
	size_t n, room;
	bool failed; /* no memory */
};

static void collect(void *arg, const struct row *row)
{
	struct resumed *all = arg;
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct row *rows = realloc(all->rows, room * sizeof(*rows));
		if (!rows) {
			all->failed = true;
			return;
		}
		all->rows = rows;
		all->room = room;
	}
	struct row *copy = &all->rows[all->n++];
	*copy = *row;
	copy->spec = json_incref(row->spec);
	copy->usage = json_incref(row->usage);
	copy->message = row->message ? strdup(row->message) : NULL;
	copy->cleanup_error = NULL;
}

static bool resume_all(struct service *s)
{
	struct resumed all = {0};
	bool ok = store_list_open(s->store, collect, &all) == STORE_OK && !all.failed;
	if (all.failed)
		say("no memory for the sandboxes that there are");
	for (size_t i = 0; i < all.n; i++) {
		if (!ok) {
			row_free(&all.rows[i]);
			continue;
		}
		bool is_doomed = all.rows[i].deleting;
		struct sandbox *b = sandbox_resume(s, &all.rows[i]);
		if (!b)
			say("no memory for the sandboxes that there are");
		ok = b != NULL;
		if (b && is_doomed)
			sandbox_end(b, "deleted");
		row_free(&all.rows[i]);
	}
	free(all.rows);
	if (ok && all.n > 0)
		say("%zu sandbox%s found again", all.n, all.n == 1 ? " is" : "es are");
	return ok;
}

/* ---- running ---- */

/* What is under way may end, for a while. */
static void drain(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	const struct timeval moment = loop_ms(LIMIT_SERVE_UNREAD_MS);
	const bool is_busy = http_busy(s) || s->calls;
	(void)fd, (void)what;
	if (!is_busy || clock_mono_us() >= s->drained_us ||
	    event_base_once(s->base, -1, EV_TIMEOUT, drain, s, &moment) != 0)
		event_base_loopbreak(s->base);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	if (s->stopping) {
		event_base_loopbreak(s->base);
		return;
	}
	s->stopping = true;
	s->drained_us = clock_mono_us() + LIMIT_SERVE_DRAIN_MS * 1000ull;
	http_stop(s);
	drain(fd, what, s);
}

/* Whoever sends it means a new configuration. */
static void on_hangup(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	say("the configuration is read at the start: end me, and start me again; sandboxes go on meanwhile");
}

#define SIGNALS 3

static bool watch_signals(struct service *s, struct event *events[SIGNALS])
{
	static const struct {
		int number;
		event_callback_fn act;
	} rows[SIGNALS] = {{SIGTERM, on_signal}, {SIGINT, on_signal}, {SIGHUP, on_hangup}};
	for (size_t i = 0; i < SIGNALS; i++) {
		events[i] = evsignal_new(s->base, rows[i].number, rows[i].act, s);
		if (!events[i] || event_add(events[i], NULL) != 0)
			return false;
	}
	return true;
}

/* The usual 1024 are too few for all sandboxes that there can be. */
static void bound_files(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max < LIMIT_SERVE_FILES ? files.rlim_max : LIMIT_SERVE_FILES;
	setrlimit(RLIMIT_NOFILE, &files);
}

static bool start(struct service *s)
{
	s->base = event_base_new();
	s->children = s->base ? children_new(s->base) : NULL;
	queue_init(&s->queue, &s->config.queue, clock_mono_us());
	return s->children && alerts_start(s) && shipping_start(s) && resume_all(s) && workflows_start(s) &&
	       http_start(s) && cleanup_start(s) && warm_start(s) && pools_start(s);
}

static void end(struct service *s)
{
	calls_free(s); /* first: keys that they hold are those of requests */
	http_free(s);
	pools_free(s);
	warm_free(s);
	workflows_free(s);
	sandboxes_free(s);
	shipping_free(s);
	alerts_free(s);
	cleanup_free(s);
	children_free(&s->children);
	store_close(&s->store);
	if (s->base)
		event_base_free(s->base);
	config_free(&s->config);
}

static int serve(struct service *s)
{
	struct event *signals[SIGNALS] = {NULL};
	bool ok = open_state(s) && start(s) && watch_signals(s, signals);
	for (size_t i = 0; i < s->config.n_backends && ok; i++)
		if (strcmp(backend_limits(s->config.backends[i]), "rlimits") == 0)
			say("%s: no cgroup can be made here, so that limits of memory and processes are weaker "
			    "(docs/service.md)",
			    s->config.backends[i]->name);
	if (ok) {
		say("ready");
		sandboxes_pump(s);
		event_base_dispatch(s->base);
	}
	for (size_t i = 0; i < SIGNALS; i++)
		if (signals[i])
			event_free(signals[i]);
	end(s);
	return ok ? 0 : 1;
}

/* ---- options ---- */

static bool use_options(struct config *c, const struct serve_options *o)
{
	const char *why = NULL;
	if (o->state && !state_dir_path(o->state, c->state, sizeof(c->state))) {
		say("--state: is too long");
		return false;
	}
	if (o->n_listen > 0)
		c->n_listen = 0;
	for (int i = 0; i < o->n_listen; i++)
		if (!config_add_listener(c, o->listen[i], &why)) {
			say("--listen %s: %s", o->listen[i], why);
			return false;
		}
	if (c->state[0] == '/')
		return true;
	say("the state directory has to be an absolute path");
	return false;
}

static int check_maker(const struct config *c, const struct backend *b)
{
	return maker_check(b->maker, c->state, b == &backend_aci && pools_are_wanted(c) ? "--pools" : NULL);
}

/* Beside what the file says: is there what it names? The exit code of all: the worst of theirs. */
static int check_backends(const struct config *c)
{
	int worst = 0;
	for (size_t i = 0; i < c->n_backends; i++) {
		const int code = c->backends[i]->maker ? check_maker(c, c->backends[i]) : 0;
		worst = code > worst ? code : worst;
	}
	return worst > 2 ? 1 : worst;
}

static int make_token(const struct config *c)
{
	return state_dir_make(c->state) && access_new_token(c->state) ? 0 : 1;
}

static int become_backend(const struct config *c, const struct serve_options *o)
{
	for (size_t i = 0; i < c->n_backends; i++)
		if (strcmp(o->backend, c->backends[i]->name) == 0 && c->backends[i]->maker)
			return maker_become(c->backends[i]->maker, c->state, o->words);
	say("--backend %s: the configuration has none of that name, or it has no program of its own", o->backend);
	return 2;
}

static int act(enum serve_action action, const struct serve_options *o)
{
	static struct service s;
	if (!config_read(&s.config, o->config) || !use_options(&s.config, o)) {
		config_free(&s.config);
		return 2;
	}
	if (action == SERVE_RUN)
		return serve(&s);
	int code;
	if (action == SERVE_BACKEND)
		code = become_backend(&s.config, o);
	else
		code = action == SERVE_CHECK ? check_backends(&s.config) : make_token(&s.config);
	config_free(&s.config);
	return code;
}

int main(int argc, char **argv)
{
	struct serve_options options;
	say_as("cage-serve");
	process_harden();
	umask(077);
	bound_files();
	mallopt(M_ARENA_MAX, 1);
	enum serve_action action = serve_options_read(argc, argv, &options);
	if (action == SERVE_EXIT || action == SERVE_WRONG)
		return action == SERVE_EXIT ? 0 : 2;
	return act(action, &options);
}
