/* The making of the signer and of workers: what each of them gets, and what it may keep of the master. */
#include <openssl/x509.h>
#include <unistd.h>

#include "core/proc/control.h"
#include "proxy/master_private.h"
#include "proxy/signer.h"
#include "proxy/worker.h"

/* ---- in the child ---- */

void proxy_drop_secrets(void *proxy)
{
	struct proxy *x = proxy;
	OPENSSL_cleanse(x->master.children.seats, x->master.n_seats * sizeof(struct seat)); /* and who may come */
	OPENSSL_cleanse(x->ticket_keys, sizeof(x->ticket_keys));
	OPENSSL_cleanse(x->fingerprint_key, sizeof(x->fingerprint_key));
	OPENSSL_cleanse(x->placeholder_key, sizeof(x->placeholder_key));
	vault_forget(&x->vault);
	EVP_PKEY_free(x->leaf_key);
	x->leaf_key = NULL;
}

/* The public half alone. */
static EVP_PKEY *public_half(EVP_PKEY *key)
{
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(key, &der);
	const unsigned char *p = der;
	EVP_PKEY *half = len > 0 ? d2i_PUBKEY(NULL, &p, len) : NULL;
	OPENSSL_free(der);
	return half;
}

static _Noreturn void run_signer(struct child *ch, pid_t parent, int control, const int *clients)
{
	struct proxy *x = ch->all->owner;
	int keep[LIMIT_WORKERS];
	size_t n = 0;
	struct signer_config config = {.ca_dir = x->ca_dir,
				       .leaf_key = public_half(x->leaf_key),
				       .control = control,
				       .clients = clients,
				       .n_clients = x->options->workers};
	for (size_t i = 0; i < x->options->workers; i++)
		if (clients[i] >= 0)
			keep[n++] = clients[i];
	child_settle(ch, "cage-signer", parent, control, keep, n);
	proxy_drop_secrets(x);
	signer_run(&config);
}

static _Noreturn void run_worker(struct child *ch, pid_t parent, int control, int signer)
{
	struct proxy *x = ch->all->owner;
	int keep[LIMIT_LISTENERS + 2];
	size_t n = 0;
	struct worker_config config = {.index = ch->index,
				       .listeners = x->listeners[ch->index],
				       .entrances = x->options->entrances,
				       .n_listeners = x->n_listeners,
				       .control = control,
				       .signer = signer,
				       .wake = ch->all->wake,
				       .ring = child_log(ch),
				       .first_id = child_first_id(ch),
				       .metrics = &x->metrics[ch->index],
				       .seats = ch->all->seats,
				       .n_seats = ch->all->n_seats,
				       .gen = ch->all->gen,
				       .has_auth = x->options->auth || x->options->sandboxes,
				       .sandbox = slice_str(x->options->sandbox),
				       .self = x->master.self,
				       .n_self = x->master.n_self,
				       .leaf_key = x->leaf_key,
				       .ticket_keys = x->ticket_keys,
				       .ledger = x->ledger,
				       .fingerprint_key = x->fingerprint_key,
				       .vault = x->vault,
				       .placeholder_key = x->placeholder_key,
				       .bindings = x->options->bindings,
				       .kit = x->options->kit,
				       .ca_dir = x->ca_dir,
				       .out = x->options->has_out ? &x->options->out : NULL,
				       .watch = ch->index == 0 ? x->options->watch : -1};
	keep[n++] = signer;
	if (config.watch >= 0)
		keep[n++] = config.watch;
	for (size_t i = 0; i < x->n_listeners; i++)
		keep[n++] = config.listeners[i];
	if (!vault_read_only(x->vault)) /* by its descriptor, which is not kept */
		_exit(1);
	child_settle(ch, "cage-worker", parent, control, keep, n);
	worker_run(&config);
}

static _Noreturn void run_reader(struct proxy *x, pid_t parent, const struct keyvault_reader *config)
{
	children_leave(&x->master.children, "cage-keyvault", parent, config->out);
	proxy_drop_secrets(x);
	keyvault_reader_run(config);
}

/* ---- in the master ---- */

/* The signer's ends of new sockets to all running workers; the workers get theirs. */
static void connect_workers(struct children *c, int clients[LIMIT_WORKERS])
{
	struct control msg = {.type = CONTROL_HELPER};
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		clients[i] = -1;
	for (size_t i = 0; i < c->n; i++) {
		struct child *ch = &c->list[i];
		int ends[2];
		if (ch->kind != CHILD_WORKER || !child_is_running(ch) || !control_pair(ends))
			continue;
		clients[ch->index] = ends[0];
		child_tell(ch, &msg, ends[1]);
		close(ends[1]);
	}
}

static pid_t fork_signer(struct child *ch, int control)
{
	int clients[LIMIT_WORKERS];
	pid_t parent = getpid();
	connect_workers(ch->all, clients);
	pid_t pid = fork();
	if (pid == 0)
		run_signer(ch, parent, control, clients);
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	return pid;
}

static pid_t fork_worker(struct child *ch, int control)
{
	struct control msg = {.type = CONTROL_CLIENT, .index = ch->index};
	pid_t parent = getpid();
	int ends[2];
	if (!control_pair(ends))
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		run_worker(ch, parent, control, ends[1]);
	if (pid > 0)
		child_tell(children_helper(ch->all), &msg, ends[0]);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

pid_t proxy_fork_reader(void *proxy, const struct policy *p, uint64_t wanted, int out)
{
	struct proxy *x = proxy;
	const struct keyvault_reader config = {
		.policy = p, .wanted = wanted, .out = out, .self = x->master.self, .n_self = x->master.n_self};
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		run_reader(x, parent, &config);
	return pid;
}

pid_t proxy_fork(struct child *ch, int control)
{
	return ch->kind == CHILD_WORKER ? fork_worker(ch, control) : fork_signer(ch, control);
}
