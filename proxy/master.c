/* The master of cage-proxy: its listeners, keys and secrets, on top of what every master does (core/proc/master.h). */
#include "proxy/master.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/trust.h"
#include "core/proc/key_file.h"
#include "inspectors/ledger.h"
#include "proxy/leaf_key.h"
#include "proxy/auth.h"
#include "proxy/master_private.h"
#include "proxy/roster.h"
#include "proxy/watch.h"

/* ---- policy ---- */

/* The policy with its values looked at, and its secrets in their slots of the vault. */
static struct policy *load_with(struct sources *sources, bool has_vault_variables, const char *path,
				struct arena *arena, struct policy_errors *errs)
{
	struct policy_readers readers = {.inspectors = chain_read_policy,
					 .value = sources_value,
					 .arg = sources,
					 .refuses_tls_resolvers = true,
					 .has_vault_variables = has_vault_variables};
	struct policy *p = policy_load(path, arena, clock_wall_s(), &readers, errs);
	sources_done(sources);
	if (!p || sources_assign(sources, p))
		return p;
	policy_store_error(
		errs, path,
		"the vault is full of secrets of other policies; those of earlier ones are forgotten in time");
	return NULL;
}

static struct policy *load_policy(void *proxy, const char *path, struct arena *arena, struct policy_errors *errs)
{
	struct proxy *x = proxy;
	return load_with(x->sources, x->options->vault_variables, path, arena, errs);
}

static struct policy *load_to_check(void *sources, const char *path, struct arena *arena, struct policy_errors *errs)
{
	return load_with(sources, false, path, arena, errs);
}

/* For messages. */
static const char *path_of(const struct policy *p)
{
	return p->files->path.ptr;
}

/* A pin may lead anywhere but to ourselves. */
static bool pins_are_clean(const struct addr_port *self, size_t n_self, const struct policy *p)
{
	struct vet vet = {.self = self, .n_self = n_self};
	bool clean = true;
	for (size_t i = 0; i < p->n_pins; i++) {
		const struct policy_pin *pin = &p->pin_list[i];
		enum reason why;
		/* Without a port of its own a pin keeps the request's: then the dial is what is checked. */
		if (pin->port == 0 || vet_pin(&vet, pin->port, &pin->addr, &why) == 1)
			continue;
		fprintf(stderr,
			"%s: upstream.resolve: %.*s is pinned to a listener of cage itself, or one of --never\n",
			path_of(p), SLICE_FMT(pin->host));
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
		fprintf(stderr, "%s: secrets: %.*s has oauth2, which needs --workers 1\n", path_of(p),
			SLICE_FMT(p->secrets[i].id));
		return false;
	}
	return true;
}

/* Who goes only by what cage-dns has answered must hear of it. */
static bool answers_are_told(const struct policy *p, const struct options *o)
{
	if (!p->bound || o->bindings[0] != '\0')
		return true;
	fprintf(stderr, "%s: upstream.bound: needs --bindings\n", path_of(p));
	return false;
}

static bool takes_captured(const struct options *o)
{
	for (size_t i = 0; i < o->n_listen; i++)
		if (o->entrances[i] == ENTRANCE_CAPTURED)
			return true;
	return false;
}

/* Nor does an address that stands for a name say which. */
static bool addresses_are_told(const struct policy *p, const struct options *o)
{
	if (p->dns.mode != DNS_SYNTHETIC || o->bindings[0] != '\0' || !takes_captured(o))
		return true;
	fprintf(stderr, "%s: dns.mode: synthetic with --transparent needs --bindings\n", path_of(p));
	return false;
}

/* Those in force, with p at its seat; p NULL: as they are. */
static struct policy_list all_policies(struct proxy *x, size_t seat, const struct policy *p)
{
	const struct children *c = &x->master.children;
	struct policy_list all = {.list = x->policies};
	for (size_t i = 0; i < c->n_seats; i++) {
		const struct policy *at = p && i == seat ? p : c->seats[i].policy;
		if (at)
			x->policies[all.n++] = at;
	}
	return all;
}

/* One identity reads vaults, for the policy that --policy names. */
static bool vaults_are_ours(size_t seat, const struct policy *p)
{
	for (size_t i = 0; i < p->n_secrets && seat > 0; i++)
		if (p->secrets[i].from == SECRET_KEYVAULT) {
			say("secret %.*s: a policy of --sandboxes can't have a secret of a key vault",
			    SLICE_FMT(p->secrets[i].id));
			return false;
		}
	return true;
}

static bool accept_policy(void *proxy, size_t seat, const struct policy *p)
{
	struct proxy *x = proxy;
	struct policy_list all = all_policies(x, seat, p);
	if (!pins_are_clean(x->master.self, x->master.n_self, p) || !tokens_are_known(p, x->options) ||
	    !answers_are_told(p, x->options) || !addresses_are_told(p, x->options) || !vaults_are_ours(seat, p) ||
	    !sources_use(x->sources, p, &all))
		return false;
	if (seat == 0)
		keyvault_use(x->keyvault, p);
	return true;
}

static bool reload_sandboxes(void *proxy)
{
	struct proxy *x = proxy;
	return !x->options->sandboxes || roster_read(&x->master, x->options->sandboxes);
}

/* Who may come. One that is no good keeps nobody else out; but there is no start without the directory. */
static bool read_sandboxes(struct proxy *x)
{
	const struct options *o = x->options;
	if (o->auth)
		return auth_read_file(o->auth, x->master.children.seats, x->master.n_seats);
	if (!o->sandboxes || roster_read(&x->master, o->sandboxes) || access(o->sandboxes, R_OK | X_OK) == 0)
		return true;
	return false;
}

/* ---- listeners ---- */

static const struct entrance_words {
	const char *option, *what;
} entrance_words[] = {[ENTRANCE_PROXY] = {"--listen", "listening on"},
		      [ENTRANCE_SOCKS] = {"--socks", "SOCKS5 on"},
		      [ENTRANCE_CAPTURED] = {"--transparent", "captured connections on"},
		      [ENTRANCE_TOOLS] = {"--tools", "tool calls on"}};

/* One socket per worker for an address, so that the kernel spreads connections; unix sockets and given ones are shared.
 */
static bool open_for_workers(struct proxy *x, size_t i)
{
	struct listen_spec spec = x->options->listen[i];
	const struct entrance_words *words = &entrance_words[x->options->entrances[i]];
	bool own = spec.kind == LISTEN_TCP && x->options->workers > 1;
	int first = master_listen(&x->master, &spec, words->option, words->what, own);
	if (first < 0)
		return false;
	if (own && !listen_address(first, &spec.at))
		return false;
	x->listeners[0][i] = first;
	for (size_t w = 1; w < x->options->workers; w++) {
		x->listeners[w][i] = own ? listen_open(&spec, true) : first;
		if (x->listeners[w][i] < 0) {
			say("%s: %s", words->option, strerror(errno));
			return false;
		}
	}
	return true;
}

static bool open_listeners(struct proxy *x)
{
	for (size_t i = 0; i < x->options->n_listen; i++)
		if (!open_for_workers(x, i))
			return false;
	x->n_listeners = x->options->n_listen;
	for (size_t i = 0; i < x->options->n_never; i++)
		master_never(&x->master, &x->options->never[i]);
	return master_listen_admin(&x->master, x->options->has_admin ? &x->options->admin : NULL);
}

/* So that clients are refused at once. A socket that workers share stands in the row of each. */
static void close_listeners(void *proxy)
{
	struct proxy *x = proxy;
	for (size_t i = 0; i < x->n_listeners; i++) {
		close(x->listeners[0][i]);
		for (size_t w = 1; w < x->options->workers; w++)
			if (x->listeners[w][i] != x->listeners[0][i])
				close(x->listeners[w][i]);
	}
}

/* ---- the rest of what is shared ---- */

static bool make_shared(struct proxy *x)
{
	x->metrics = children_memory(sizeof(*x->metrics) * x->options->workers);
	void *counters = children_memory(ledger_size());
	x->ledger = counters ? ledger_init(counters) : NULL;
	x->leaf_key = leaf_key_new();
	x->vault = vault_new();
	x->sources = x->vault ? sources_new(x->vault) : NULL;
	return x->metrics && x->ledger && x->sources && x->leaf_key &&
	       RAND_priv_bytes(x->ticket_keys, sizeof(x->ticket_keys)) == 1;
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct proxy *x = arg;
	struct policy_list all = all_policies(x, 0, NULL);
	sources_look(x->sources, &all);
}

static bool watch_sources(struct proxy *x)
{
	struct timeval period = loop_ms(LIMIT_SECRET_FILE_MS);
	x->look = event_new(loop_base(x->master.loop), -1, EV_PERSIST, on_look, x);
	return x->look && event_add(x->look, &period) == 0;
}

/* ---- secrets of key vaults ---- */

static void say_ready(const struct proxy *x)
{
	if (x->is_at_work && keyvault_is_settled(x->keyvault))
		say("ready, CA in %s", x->ca_file);
}

static void on_settled(void *proxy, bool is_good)
{
	struct proxy *x = proxy;
	if (is_good) {
		say_ready(x);
		return;
	}
	say("a secret of a key vault could not be read: nothing is served without it");
	master_give_up(&x->master);
}

static void on_read(void *proxy, const struct policy_secret *s, int status, bool is_good)
{
	struct proxy *x = proxy;
	struct audit_event e = {.kind = AUDIT_SECRET,
				.decision = is_good ? DECISION_ALLOW : DECISION_ERROR,
				.reason = is_good ? REASON_NONE : REASON_SECRET_UNAVAILABLE,
				.method = SLICE("GET"),
				.scheme = SLICE("https"),
				.host = s->vault->host.text,
				.port = s->vault->port,
				.path = s->vault->path,
				.status = status};
	master_log(&x->master, &e);
}

static bool open_keyvault(struct proxy *x)
{
	const struct keyvault_config config = {.loop = x->master.loop,
					       .sources = x->sources,
					       .owner = x,
					       .fork = proxy_fork_reader,
					       .on_read = on_read,
					       .on_settled = on_settled};
	x->keyvault = keyvault_new(&config);
	return x->keyvault != NULL;
}

static bool is_ready(void *proxy)
{
	const struct proxy *x = proxy;
	return keyvault_is_settled(x->keyvault);
}

/* ---- the loop ---- */

static void on_ready(void *proxy)
{
	struct proxy *x = proxy;
	x->is_at_work = true;
	say_ready(x);
}

static void put_gauge(struct text *t, struct slice name, struct slice help, uint64_t n)
{
	const struct slice parts[] = {SLICE("# HELP "),  name, SLICE(" "), help, SLICE("\n# TYPE "), name,
				      SLICE(" gauge\n"), name, SLICE(" ")};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		text_put(t, parts[i]);
	text_put_u64(t, n);
	text_put_char(t, '\n');
}

static void write_metrics(void *proxy, struct text *t, uint64_t gen, bool log_ok)
{
	const struct proxy *x = proxy;
	metrics_write(t, x->metrics, x->options->workers, gen, log_ok);
	keyvault_metrics(x->keyvault, t);
	put_gauge(t, SLICE("cage_sandboxes"), SLICE("Sandboxes that may come."), roster_count(&x->master));
	put_gauge(t, SLICE("cage_workers_behind"), SLICE("Workers that do not have the last policy or sandbox yet."),
		  children_behind(&x->master.children));
}

static bool prepare_files(struct proxy *x)
{
	if (!key_dir_path(x->options->ca_dir, x->ca_dir, sizeof(x->ca_dir))) {
		say("no place for the CA: give --ca-dir");
		return false;
	}
	snprintf(x->ca_file, sizeof(x->ca_file), "%s/ca.pem", x->ca_dir);
	return key_file_get(x->options->keys, x->ca_dir, KEY_FILE_FINGERPRINT, x->fingerprint_key, CHAIN_KEY) &&
	       placeholder_key_load(x->options->keys, x->ca_dir, x->placeholder_key);
}

static void proxy_close(struct proxy *x)
{
	master_close(&x->master);
	event_free(x->look);
	keyvault_free(&x->keyvault);
	sources_free(&x->sources);
	proxy_drop_secrets(x);
	for (size_t i = 0; i < x->options->n_listen; i++)
		if (x->options->listen[i].kind == LISTEN_UNIX)
			unlink(x->options->listen[i].path);
	if (x->options->has_admin && x->options->admin.kind == LISTEN_UNIX)
		unlink(x->options->admin.path);
}

static bool check_watch(const struct options *o)
{
	if (o->watch < 0 || watch_is_usable(o->watch))
		return true;
	say("--watch: not a packet socket");
	return false;
}

static int proxy_start(struct proxy *x)
{
	if (!master_open(&x->master) || !make_shared(x) || !open_keyvault(x))
		return 1;
	if (!check_watch(x->options) || !prepare_files(x))
		return 2;
	if (!open_listeners(x))
		return 1;
	const struct seat nobody = {.id_len = 0};
	if (master_load_policy(&x->master, 0, &nobody, x->options->policy) != MASTER_LOADED || !read_sandboxes(x))
		return 2;
	trust_load_system();
	return watch_sources(x) && master_start(&x->master) ? 0 : 1;
}

static const struct master_program program = {.children = {.helper = "signer",
							   .fork = proxy_fork,
							   .drop_secrets = proxy_drop_secrets,
							   .close_listeners = close_listeners},
					      .load = load_policy,
					      .accept = accept_policy,
					      .reload = reload_sandboxes,
					      .on_ready = on_ready,
					      .is_ready = is_ready,
					      .metrics = write_metrics};

int proxy_run(const struct options *options)
{
	static struct proxy x; /* static: it is large, and the children live in its frames */
	x.options = options;
	x.master = (struct master){.program = &program,
				   .owner = &x,
				   .policy_file = options->policy,
				   .log = options->log,
				   .log_max = options->log_max,
				   .sandbox = options->sandbox,
				   .ca_file = x.ca_file,
				   .reloads = options->reloads,
				   .workers = options->workers,
				   .n_seats = options->auth || options->sandboxes ? 1 + LIMIT_SANDBOXES : 1};
	int code = proxy_start(&x);
	if (code != 0)
		return code;
	code = master_wait(&x.master);
	proxy_close(&x);
	return code;
}

struct checking {
	const struct options *options;
	struct sources *sources;
	struct policy_errors *errs;
};

/* A vault is for those who run it: whoever checks a policy may have no identity there. */
static void say_good(const char *file, const struct policy *p)
{
	printf("%s: policy \"%.*s\" is good: %zu rule%s\n", file, SLICE_FMT(p->name), p->n_rules,
	       p->n_rules == 1 ? "" : "s");
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from == SECRET_KEYVAULT)
			printf("%s: secret %.*s: %.*s was not read: that takes the identity that cage-proxy runs "
			       "with\n",
			       file, SLICE_FMT(p->secrets[i].id), SLICE_FMT(p->secrets[i].source));
}

/* Where the options say that it listens, and what it is not to connect to: a port that is picked is known to who runs it alone. */
static bool pins_are_clean_by(const struct options *o, const struct policy *p)
{
	struct addr_port self[LIMIT_LISTENERS + LIMIT_NEVER];
	size_t n = 0;
	for (size_t i = 0; i < o->n_listen; i++)
		if (o->listen[i].kind == LISTEN_TCP && o->listen[i].at.port != 0)
			self[n++] = o->listen[i].at;
	for (size_t i = 0; i < o->n_never; i++)
		self[n++] = o->never[i];
	return pins_are_clean(self, n, p);
}

static bool check_policy(void *checking, const char *path)
{
	struct checking *k = checking;
	int fd = -1;
	size_t size;
	*k->errs = (struct policy_errors){.n = 0};
	const struct policy *p = policy_store_compile(path, 0, 1, load_to_check, k->sources, k->errs, &fd, &size);
	if (!p) {
		policy_errors_print(k->errs, STDERR_FILENO);
		return false;
	}
	bool ok = pins_are_clean_by(k->options, p) && tokens_are_known(p, k->options);
	if (ok)
		say_good(path, p);
	policy_store_unmap(0);
	close(fd);
	return ok;
}

int proxy_check(const struct options *options)
{
	struct vault *vault = vault_new();
	struct checking k = {
		.options = options, .sources = vault ? sources_new(vault) : NULL, .errs = calloc(1, sizeof(*k.errs))};
	int code = 1;
	if (k.errs && k.sources && policy_store_reserve(1)) {
		bool ok = check_policy(&k, options->policy);
		if (options->sandboxes)
			ok = roster_check(options->sandboxes, check_policy, &k) && ok;
		code = ok ? 0 : 2;
	}
	sources_free(&k.sources);
	vault_forget(&vault);
	free(k.errs);
	return code;
}
