/* The master of cage-dns: its sockets, on top of what every master does (core/proc/master.h). */
#include "dns/master.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/key_file.h"
#include "core/proc/master.h"
#include "dns/plain.h"
#include "dns/sockets.h"
#include "dns/worker.h"

struct dns {
	struct master master;
	const struct options *options;
	struct dns_sockets sockets;
	struct dns_metrics *metrics;
	struct ledger *ledger;
	unsigned char fingerprint_key[CHAIN_KEY];
	int bindings; /* -1: none */
	uint64_t bindings_seed;
};

/* ---- policy ---- */

/* The values of secrets are the proxy's alone: here their sources are not even looked at. */
static struct policy *load_policy(void *dns, const char *path, struct arena *arena, struct policy_errors *errs)
{
	(void)dns;
	struct policy_readers readers = {.inspectors = chain_read_policy};
	return policy_load(path, arena, clock_wall_s(), &readers, errs);
}

/* Plain text where the policy wants TLS would give the questions away. */
static bool mixes_tls(const struct options *o, const struct policy *p)
{
	size_t tls = policy_count_tls(p->resolvers, p->n_resolvers) + policy_count_tls(o->upstream, o->n_upstream);
	if (tls == 0 || tls == p->n_resolvers + o->n_upstream)
		return false;
	fprintf(stderr,
		"%s: upstream.resolvers: either all resolvers are over TLS or none, those of --upstream included\n",
		o->policy);
	return true;
}

/* One that is never asked would be missed when it is needed. */
static bool asks_too_many(const struct options *o, const struct policy *p)
{
	if (o->n_upstream + p->n_resolvers <= LIMIT_DNS_SERVERS)
		return false;
	fprintf(stderr, "%s: upstream.resolvers: at most %d resolvers, those of --upstream included\n", o->policy,
		LIMIT_DNS_SERVERS);
	return true;
}

static bool is_self(const struct master *m, const struct addr *addr, uint16_t port)
{
	struct vet vet = {.self = m->self, .n_self = m->n_self};
	enum reason why;
	return vet_pin(&vet, port, addr, &why) == 0 && why == REASON_ADDRESS_SELF;
}

/* Where the system's resolvers are asked. */
static bool system_is_self(const struct dns *x, const struct policy *p)
{
	struct addr_port servers[LIMIT_DNS_SERVERS];
	char where[ADDR_TEXT];
	if (x->options->n_upstream + p->n_resolvers > 0 || p->dns.mode == DNS_SYNTHETIC)
		return false;
	size_t n = dns_system_servers(servers);
	for (size_t i = 0; i < n; i++) {
		if (!is_self(&x->master, &servers[i].addr, servers[i].port))
			continue;
		struct slice text = addr_format(&servers[i].addr, where);
		say("the system's resolver %.*s (/etc/resolv.conf) is a listener of cage-dns itself: give --upstream",
		    SLICE_FMT(text));
		return true;
	}
	return false;
}

/* To ask ourselves would never end. */
static bool asks_itself(const struct dns *x, const struct policy *p)
{
	for (size_t i = 0; i < x->options->n_upstream; i++)
		if (is_self(&x->master, &x->options->upstream[i].addr, x->options->upstream[i].port)) {
			say("--upstream: this is a listener of cage-dns itself");
			return true;
		}
	for (size_t i = 0; i < p->n_resolvers; i++)
		if (is_self(&x->master, &p->resolvers[i].addr, p->resolvers[i].port)) {
			fprintf(stderr, "%s: upstream.resolvers: this is a listener of cage-dns itself\n",
				x->options->policy);
			return true;
		}
	return system_is_self(x, p);
}

/* Who can't tell what an address stands for must not give any. */
static bool gives_in_vain(const struct options *o, const struct policy *p)
{
	if (p->dns.mode != DNS_SYNTHETIC || o->has_bindings)
		return false;
	fprintf(stderr, "%s: dns.mode: synthetic needs --bindings\n", o->policy);
	return true;
}

static bool accept_policy(void *dns, size_t seat, const struct policy *p)
{
	(void)seat; /* there is one */
	const struct dns *x = dns;
	return !mixes_tls(x->options, p) && !asks_too_many(x->options, p) && !asks_itself(x, p) &&
	       !gives_in_vain(x->options, p);
}

/* ---- sockets ---- */

static bool open_socket(struct dns *x, const struct listen_spec *spec)
{
	struct master *m = &x->master;
	struct listen_spec bound = {.kind = LISTEN_TCP, .fd = -1};
	char where[sizeof(spec->path) + ADDR_TEXT];
	if (!dns_sockets_open(&x->sockets, spec, &bound.at)) {
		int error = errno;
		listen_spec_format(spec, where, sizeof(where));
		say("can't listen on %s (--listen): %s", where, strerror(error));
		return false;
	}
	m->self[m->n_self++] = bound.at;
	listen_spec_format(&bound, where, sizeof(where));
	say("listening on %s", where);
	return true;
}

static bool open_bindings(struct dns *x)
{
	x->bindings = -1;
	if (!x->options->has_bindings)
		return true;
	x->bindings_seed = map_seed();
	x->bindings = master_listen(&x->master, &x->options->bindings, "--bindings", "bindings on", false);
	return x->bindings >= 0;
}

static bool open_sockets(struct dns *x)
{
	for (size_t i = 0; i < x->options->n_listen; i++)
		if (!open_socket(x, &x->options->listen[i]))
			return false;
	return open_bindings(x) && master_listen_admin(&x->master, x->options->has_admin ? &x->options->admin : NULL);
}

static void close_listeners(void *dns)
{
	struct dns *x = dns;
	dns_sockets_close(&x->sockets);
}

/* ---- children ---- */

static void drop_secrets(void *dns)
{
	struct dns *x = dns;
	OPENSSL_cleanse(x->fingerprint_key, sizeof(x->fingerprint_key));
}

static _Noreturn void run_worker(struct child *ch, pid_t parent, int control)
{
	const struct dns *x = ch->all->owner;
	int keep[2 * LIMIT_LISTENERS + 1];
	size_t n = 0;
	struct worker_config config = {.sockets = &x->sockets,
				       .control = control,
				       .wake = ch->all->wake,
				       .ring = child_log(ch),
				       .first_id = child_first_id(ch),
				       .metrics = x->metrics,
				       .seat = &ch->all->seats[0],
				       .sandbox = slice_str(x->options->sandbox),
				       .upstream = x->options->upstream,
				       .n_upstream = x->options->n_upstream,
				       .self = x->master.self,
				       .n_self = x->master.n_self,
				       .ledger = x->ledger,
				       .fingerprint_key = x->fingerprint_key,
				       .bindings = x->bindings,
				       .bindings_seed = x->bindings_seed};
	for (size_t i = 0; i < x->sockets.n_udp; i++)
		keep[n++] = x->sockets.udp[i];
	for (size_t i = 0; i < x->sockets.n_tcp; i++)
		keep[n++] = x->sockets.tcp[i];
	if (x->bindings >= 0)
		keep[n++] = x->bindings;
	child_settle(ch, "cage-dns-worker", parent, control, keep, n);
	worker_run(&config);
}

static pid_t fork_worker(struct child *ch, int control)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		run_worker(ch, parent, control);
	return pid;
}

static void on_ready(void *dns)
{
	(void)dns;
	say("ready");
}

static void write_metrics(void *dns, struct text *t, uint64_t gen, bool log_ok)
{
	const struct dns *x = dns;
	dns_metrics_write(t, x->metrics, gen, log_ok);
}

/* ---- life ---- */

static bool open_key(struct dns *x)
{
	char dir[4096] = "";
	if (x->options->keys || key_dir_path(x->options->ca_dir, dir, sizeof(dir)))
		return key_file_get(x->options->keys, dir, KEY_FILE_FINGERPRINT, x->fingerprint_key, CHAIN_KEY);
	say("no place for fingerprint.key: give --ca-dir");
	return false;
}

static bool make_shared(struct dns *x)
{
	void *counters = children_memory(ledger_size());
	x->ledger = counters ? ledger_init(counters) : NULL;
	x->metrics = children_memory(sizeof(*x->metrics));
	return x->ledger && x->metrics;
}

static int dns_start(struct dns *x)
{
	if (!master_open(&x->master) || !make_shared(x))
		return 1;
	if (!open_key(x))
		return 2;
	if (!open_sockets(x))
		return 1;
	const struct seat nobody = {.id_len = 0};
	if (master_load_policy(&x->master, 0, &nobody, x->options->policy) != MASTER_LOADED)
		return 2;
	return master_start(&x->master) ? 0 : 1;
}

static void dns_close(struct dns *x)
{
	master_close(&x->master);
	drop_secrets(x);
	if (x->options->has_admin && x->options->admin.kind == LISTEN_UNIX)
		unlink(x->options->admin.path);
	if (x->options->has_bindings)
		unlink(x->options->bindings.path);
}

static const struct master_program program = {
	.children = {.fork = fork_worker, .drop_secrets = drop_secrets, .close_listeners = close_listeners},
	.load = load_policy,
	.accept = accept_policy,
	.on_ready = on_ready,
	.metrics = write_metrics};

int dns_run(const struct options *options)
{
	static struct dns x; /* static: it is large, and the children live in its frames */
	x.options = options;
	x.master = (struct master){.program = &program,
				   .owner = &x,
				   .policy_file = options->policy,
				   .log = options->log,
				   .log_max = options->log_max,
				   .log_turns = options->log_turns,
				   .sandbox = options->sandbox,
				   .reloads = options->reloads,
				   .workers = 1,
				   .n_seats = 1};
	int code = dns_start(&x);
	if (code != 0)
		return code;
	code = master_wait(&x.master);
	dns_close(&x);
	return code;
}

int dns_check(const struct options *options)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs)
		return 1;
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = load_policy(NULL, options->policy, &arena, errs);
	int code = p && !mixes_tls(options, p) && !asks_too_many(options, p) && !gives_in_vain(options, p) ? 0 : 2;
	if (code == 0)
		printf("%s: policy \"%.*s\" is good: %zu rule%s\n", options->policy, SLICE_FMT(p->name), p->n_rules,
		       p->n_rules == 1 ? "" : "s");
	else if (!p)
		policy_errors_print(errs, STDERR_FILENO);
	arena_free(&arena);
	free(errs);
	return code;
}
