/* The master process: sets everything up, then waits for signals, for its children and for the admin port. */
#include "proxy/master.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "inspectors/ledger.h"
#include "proxy/admin.h"
#include "proxy/ca.h"
#include "proxy/children.h"
#include "proxy/fingerprint_key.h"
#include "proxy/leaf_key.h"
#include "proxy/policy_store.h"
#include "proxy/process.h"
#include "proxy/sources.h"
#include "proxy/trust.h"

struct master {
	const struct options *options;
	struct children children;
	struct loop *loop;
	struct event *signals;
	struct sources *sources;
	struct event *look; /* at the sources */
	struct admin *admin;
	struct admin_source admin_source;
	char ca_file[4200];
	uint64_t gen;
	int exit_code;
};

/* ---- log ---- */

static struct audit_ring *own_ring(struct master *m)
{
	return m->children.rings[0];
}

static void log_event(struct master *m, enum audit_kind kind, enum audit_decision decision, enum reason reason)
{
	const struct policy *p = m->children.policy;
	struct audit_event e = {.ts_us = clock_wall_us(),
				.kind = kind,
				.sandbox = slice_str(m->options->sandbox),
				.decision = decision,
				.reason = reason,
				.stage = kind == AUDIT_POLICY  ? STAGE_POLICY
					 : kind == AUDIT_ERROR ? STAGE_LOG
							       : STAGE_NONE};
	if (p) {
		e.policy = p->name;
		e.policy_sha = slice_str(p->sha);
		e.gen = p->gen;
	}
	uint64_t one = 1;
	if (audit_note(own_ring(m), &e) != CAGE_OK || write(m->children.wake, &one, sizeof(one)) < 0)
		fputs("cage-proxy: an event of the master did not reach the log\n", stderr);
}

/* ---- policy ---- */

/* A pin may lead anywhere but to ourselves. */
static bool pins_are_clean(const struct children *c, const struct policy *p, const char *path)
{
	struct vet vet = {.self = c->self, .n_self = c->n_self};
	bool clean = true;
	for (size_t i = 0; i < p->n_pins; i++) {
		const struct policy_pin *pin = &p->pin_list[i];
		enum reason why;
		/* Without a port of its own a pin keeps the request's: then the dial is what is checked. */
		if (pin->port == 0 || vet_pin(&vet, pin->port, &pin->addr, &why) == 1)
			continue;
		fprintf(stderr, "%s: upstream.resolve: %.*s is pinned to a listener of cage itself\n", path,
			SLICE_FMT(pin->host));
		clean = false;
	}
	return clean;
}

/* A token is known to the worker that got it: another one would not take it out of responses. */
static bool tokens_are_known(const struct policy *p, const struct options *o)
{
	for (size_t i = 0; i < p->n_secrets && o->workers > 1; i++) {
		if (!p->secrets[i].oauth)
			continue;
		fprintf(stderr, "%s: secrets: %.*s has oauth2, which needs --workers 1\n", o->policy,
			SLICE_FMT(p->secrets[i].id));
		return false;
	}
	return true;
}

/* Compiles the policy as the next generation and makes it the current one. */
static bool load_policy(struct master *m)
{
	struct children *c = &m->children;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	int fd = -1;
	size_t size = 0;
	if (!errs)
		return false;
	const struct policy *p = policy_store_compile(m->options->policy, m->gen + 1, m->sources, errs, &fd, &size);
	if (!p)
		policy_errors_print(errs, STDERR_FILENO);
	free(errs);
	if (p && (!pins_are_clean(c, p, m->options->policy) || !tokens_are_known(p, m->options) ||
		  !sources_use(m->sources, p))) {
		policy_store_unmap(m->gen + 1);
		close(fd);
		p = NULL;
	}
	if (!p)
		return false;
	if (c->policy) {
		policy_store_unmap(m->gen);
		close(c->policy_fd);
	}
	m->gen++;
	c->policy = p;
	c->policy_fd = fd;
	c->policy_size = size;
	return true;
}

static void reload(struct master *m)
{
	if (load_policy(m)) {
		log_event(m, AUDIT_POLICY, DECISION_NONE, REASON_POLICY_LOADED);
		children_send_policy(&m->children);
		fprintf(stderr, "cage-proxy: policy %s loaded, generation %llu\n", m->options->policy,
			(unsigned long long)m->gen);
	} else {
		log_event(m, AUDIT_POLICY, DECISION_ERROR, REASON_POLICY_REJECTED);
		fprintf(stderr, "cage-proxy: policy %s rejected; generation %llu stays in force\n", m->options->policy,
			(unsigned long long)m->gen);
	}
}

/* ---- listeners ---- */

/* The address as it is bound now, which tells the port where 0 was asked for. */
static void say_where(const char *what, struct listen_spec spec, int fd)
{
	char where[sizeof(spec.path) + ADDR_TEXT];
	if (spec.kind == LISTEN_TCP && !listen_address(fd, &spec.at))
		return;
	listen_spec_format(&spec, where, sizeof(where));
	fprintf(stderr, "cage-proxy: %s %s\n", what, where);
}

static int open_listener(struct children *c, const struct listen_spec *spec, const char *option, bool reuseport)
{
	int fd = listen_open(spec, reuseport);
	if (fd < 0) {
		int err = errno;
		char where[sizeof(spec->path) + ADDR_TEXT];
		listen_spec_format(spec, where, sizeof(where));
		fprintf(stderr, "cage-proxy: can't listen on %s (%s): %s\n", where, option, strerror(err));
		return -1;
	}
	if (c->n_self < LIMIT_LISTENERS + 1 && listen_address(fd, &c->self[c->n_self]))
		c->n_self++;
	return fd;
}

static const struct entrance_words {
	const char *option, *what;
} entrance_words[] = {[ENTRANCE_PROXY] = {"--listen", "listening on"},
		      [ENTRANCE_SOCKS] = {"--socks", "SOCKS5 on"},
		      [ENTRANCE_CAPTURED] = {"--transparent", "captured connections on"}};

/* One socket per worker for an address, so that the kernel spreads connections; unix sockets and given ones are shared.
 */
static bool open_for_workers(struct children *c, size_t i)
{
	struct listen_spec spec = c->options->listen[i];
	const struct entrance_words *words = &entrance_words[c->options->entrances[i]];
	bool own = spec.kind == LISTEN_TCP && c->options->workers > 1;
	int first = open_listener(c, &spec, words->option, own);
	if (first < 0)
		return false;
	say_where(words->what, spec, first);
	if (own && !listen_address(first, &spec.at))
		return false;
	c->listeners[0][i] = first;
	for (size_t w = 1; w < c->options->workers; w++) {
		c->listeners[w][i] = own ? listen_open(&spec, true) : first;
		if (c->listeners[w][i] < 0) {
			fprintf(stderr, "cage-proxy: %s: %s\n", words->option, strerror(errno));
			return false;
		}
	}
	return true;
}

static bool open_listeners(struct children *c)
{
	for (size_t i = 0; i < c->options->n_listen; i++)
		if (!open_for_workers(c, i))
			return false;
	c->n_listeners = c->options->n_listen;
	c->admin_fd = -1;
	if (!c->options->has_admin)
		return true;
	c->admin_fd = open_listener(c, &c->options->admin, "--admin", false);
	if (c->admin_fd < 0)
		return false;
	say_where("admin on", c->options->admin, c->admin_fd);
	return true;
}

/* ---- what is shared ---- */

static void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static bool make_shared(struct children *c)
{
	c->metrics = shared_memory(sizeof(*c->metrics) * c->options->workers);
	c->log_shared = shared_memory(sizeof(*c->log_shared));
	void *counters = shared_memory(ledger_size());
	c->n_rings = c->options->workers + 1;
	for (size_t i = 0; i < c->n_rings; i++) {
		void *memory = shared_memory(audit_ring_size());
		if (!memory)
			return false;
		c->rings[i] = audit_ring_init(memory);
	}
	c->ledger = counters ? ledger_init(counters) : NULL;
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->leaf_key = leaf_key_new();
	c->vault = vault_new();
	return c->metrics && c->log_shared && c->ledger && c->vault && c->wake >= 0 &&
	       pipe2(c->living, O_CLOEXEC) == 0 && c->leaf_key &&
	       RAND_priv_bytes(c->ticket_keys, sizeof(c->ticket_keys)) == 1;
}

static void list_children(struct children *c)
{
	c->list[c->n++] = (struct child){.kind = CHILD_LOGGER};
	c->list[c->n++] = (struct child){.kind = CHILD_SIGNER};
	for (unsigned i = 0; i < c->options->workers; i++)
		c->list[c->n++] = (struct child){.kind = CHILD_WORKER, .index = i};
}

/* ---- the loop ---- */

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct master *m = arg;
	struct signalfd_siginfo info;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			children_reap(&m->children);
		else if (info.ssi_signo == SIGHUP && m->children.phase != CHILDREN_STOPPING)
			reload(m);
		else if (info.ssi_signo == SIGUSR1)
			children_reopen_log(&m->children);
		else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			children_stop(&m->children);
	}
}

/* From here on signals arrive as events. */
static bool watch_signals(struct master *m)
{
	static const int watched[] = {SIGCHLD, SIGHUP, SIGUSR1, SIGTERM, SIGINT};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		sigaddset(&set, watched[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return false;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	m->signals = fd >= 0 ? event_new(loop_base(m->loop), fd, EV_READ | EV_PERSIST, on_signal, m) : NULL;
	return m->signals && event_add(m->signals, NULL) == 0;
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct master *m = arg;
	sources_look(m->sources, m->children.policy);
}

static bool watch_sources(struct master *m)
{
	struct timeval period = loop_ms(LIMIT_SECRET_FILE_MS);
	m->look = event_new(loop_base(m->loop), -1, EV_PERSIST, on_look, m);
	return m->look && event_add(m->look, &period) == 0;
}

static struct master *master_of(struct children *c)
{
	return (struct master *)(void *)((char *)c - offsetof(struct master, children));
}

/* A new log writer has something to write at once, which proves that it can, before any traffic is let out. */
static void on_log_start(struct children *c)
{
	struct master *m = master_of(c);
	if (c->phase != CHILDREN_STARTING) {
		log_event(m, AUDIT_ERROR, DECISION_ERROR, REASON_WORKER_DIED); /* the one before it did */
		return;
	}
	log_event(m, AUDIT_START, DECISION_NONE, REASON_NONE);
	log_event(m, AUDIT_POLICY, DECISION_NONE, REASON_POLICY_LOADED);
}

static void on_ready(struct children *c)
{
	struct master *m = master_of(c);
	fprintf(stderr, "cage-proxy: ready, CA in %s\n", m->ca_file);
}

static void on_failed(struct children *c)
{
	struct master *m = master_of(c);
	m->exit_code = 1;
	children_stop(c);
}

static void on_stopped(struct children *c)
{
	log_event(master_of(c), AUDIT_STOP, DECISION_NONE, REASON_NONE);
}

static bool admin_is_ready(void *arg)
{
	struct master *m = arg;
	return children_are_ready(&m->children) && audit_is_available(own_ring(m));
}

static void admin_metrics(void *arg, struct text *t)
{
	struct master *m = arg;
	metrics_write(t, m->children.metrics, m->options->workers, m->gen, audit_is_available(own_ring(m)));
}

static bool start_admin(struct master *m)
{
	if (m->children.admin_fd < 0)
		return true;
	m->admin_source = (struct admin_source){
		.is_ready = admin_is_ready, .metrics = admin_metrics, .ca_file = m->ca_file, .arg = m};
	m->admin = admin_new(m->loop, m->children.admin_fd, &m->admin_source);
	return m->admin != NULL;
}

static bool prepare_files(struct master *m)
{
	struct children *c = &m->children;
	if (!ca_dir_path(m->options->ca_dir, c->ca_dir, sizeof(c->ca_dir))) {
		fputs("cage-proxy: no place for the CA: give --ca-dir\n", stderr);
		return false;
	}
	snprintf(m->ca_file, sizeof(m->ca_file), "%s/ca.pem", c->ca_dir);
	if (m->options->auth)
		c->auth = auth_load(m->options->auth);
	return (!m->options->auth || c->auth) && fingerprint_key_open(c->ca_dir, c->fingerprint_key) &&
	       placeholder_key_load(c->ca_dir, c->placeholder_key);
}

static void master_close(struct master *m)
{
	struct children *c = &m->children;
	admin_free(&m->admin);
	for (size_t i = 0; i < c->n; i++)
		event_free(c->list[i].restart);
	event_free(c->stop_timer);
	event_free(m->signals);
	event_free(m->look);
	sources_free(&m->sources);
	vault_forget(&c->vault);
	auth_free(&c->auth);
	EVP_PKEY_free(c->leaf_key);
	OPENSSL_cleanse(c->ticket_keys, sizeof(c->ticket_keys));
	OPENSSL_cleanse(c->fingerprint_key, sizeof(c->fingerprint_key));
	OPENSSL_cleanse(c->placeholder_key, sizeof(c->placeholder_key));
	for (size_t i = 0; i < m->options->n_listen; i++)
		if (m->options->listen[i].kind == LISTEN_UNIX)
			unlink(m->options->listen[i].path);
	if (m->options->has_admin && m->options->admin.kind == LISTEN_UNIX)
		unlink(m->options->admin.path);
}

static int master_start(struct master *m)
{
	struct children *c = &m->children;
	if (!policy_store_reserve() || !make_shared(c))
		return 1;
	m->sources = sources_new(c->vault);
	if (!m->sources)
		return 1;
	if (!prepare_files(m))
		return 2;
	if (!open_listeners(c))
		return 1;
	if (!load_policy(m))
		return 2;
	trust_load_system();
	list_children(c);
	if (!watch_signals(m) || !watch_sources(m) || !start_admin(m))
		return 1;
	children_start(c);
	return 0;
}

int master_run(const struct options *options)
{
	static struct master m; /* static: it is large, and the children live in its frames */
	m.options = options;
	m.children.options = options;
	m.children.on_log_start = on_log_start;
	m.children.on_ready = on_ready;
	m.children.on_failed = on_failed;
	m.children.on_stopped = on_stopped;
	m.loop = m.children.loop = loop_new();
	if (!m.loop)
		return 1;
	int code = master_start(&m);
	if (code != 0)
		return code;
	loop_run(m.loop);
	master_close(&m);
	return m.children.had_crash ? 1 : m.exit_code;
}

int master_check(const struct options *options)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct vault *vault = vault_new();
	struct sources *sources = vault ? sources_new(vault) : NULL;
	const struct policy *p = NULL;
	int fd = -1, code = 1;
	size_t size;
	if (!errs || !sources || !policy_store_reserve())
		goto out;
	p = policy_store_compile(options->policy, 1, sources, errs, &fd, &size);
	code = p && tokens_are_known(p, options) ? 0 : 2;
	if (code == 0)
		printf("%s: policy \"%.*s\" is good: %zu rule%s\n", options->policy, SLICE_FMT(p->name), p->n_rules,
		       p->n_rules == 1 ? "" : "s");
	else if (!p)
		policy_errors_print(errs, STDERR_FILENO);
	if (fd >= 0)
		close(fd);
out:
	sources_free(&sources);
	vault_forget(&vault);
	free(errs);
	return code;
}
