/* The making of a child: what it shares with whom, what it may keep of the master, and what it then runs. */
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "proxy/children_private.h"
#include "proxy/logger.h"
#include "proxy/process.h"
#include "proxy/signer.h"

/* ---- in the child ---- */

/* What only workers need: tokens, ticket keys, secrets, and the leaves' private key. */
static void drop_secrets(struct children *c)
{
	auth_free(&c->auth);
	OPENSSL_cleanse(c->ticket_keys, sizeof(c->ticket_keys));
	OPENSSL_cleanse(c->fingerprint_key, sizeof(c->fingerprint_key));
	OPENSSL_cleanse(c->placeholder_key, sizeof(c->placeholder_key));
	vault_forget(&c->vault);
	EVP_PKEY_free(c->leaf_key);
	c->leaf_key = NULL;
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

static _Noreturn void run_logger(struct children *c, int control)
{
	struct logger_config config = {.path = c->options->log,
				       .shared = c->log_shared,
				       .rings = c->rings,
				       .n_rings = c->n_rings,
				       .control = control,
				       .wake = c->wake,
				       .living = c->living[0]};
	int keep[] = {control, c->wake, c->living[0]};
	/* It does not die with the master: it first writes down what the others left. */
	process_become("cage-log");
	process_keep_fds(keep, sizeof(keep) / sizeof(keep[0]));
	drop_secrets(c);
	logger_run(&config);
}

/* A child sees its own ring of the log at most: what one writes can't be changed by another. -1: none at all. */
static void keep_ring(struct children *c, int own)
{
	for (size_t i = 0; i < c->n_rings; i++)
		if ((int)i != own)
			munmap(c->rings[i], audit_ring_size());
	munmap(c->log_shared, sizeof(*c->log_shared));
}

static _Noreturn void run_signer(struct children *c, pid_t parent, int control, const int *clients)
{
	int keep[LIMIT_WORKERS + 1];
	size_t n = 0;
	struct signer_config config = {.ca_dir = c->ca_dir,
				       .leaf_key = public_half(c->leaf_key),
				       .control = control,
				       .clients = clients,
				       .n_clients = c->options->workers};
	process_become("cage-signer");
	process_die_with(parent);
	drop_secrets(c);
	keep[n++] = control;
	for (size_t i = 0; i < c->options->workers; i++)
		if (clients[i] >= 0)
			keep[n++] = clients[i];
	process_keep_fds(keep, n);
	keep_ring(c, -1);
	signer_run(&config);
}

static _Noreturn void run_worker(struct children *c, pid_t parent, const struct child *ch, int control, int signer)
{
	int keep[LIMIT_LISTENERS + 4];
	size_t n = 0;
	struct worker_config config = {.index = ch->index,
				       .listeners = c->listeners[ch->index],
				       .entrances = c->options->entrances,
				       .n_listeners = c->n_listeners,
				       .control = control,
				       .signer = signer,
				       .wake = c->wake,
				       .ring = c->rings[child_ring(ch)],
				       .first_id =
					       (uint64_t)c->log_shared->id_space[child_ring(ch)] << AUDIT_ID_BITS | 1,
				       .metrics = &c->metrics[ch->index],
				       .policy = c->policy,
				       .auth = c->auth,
				       .sandbox = slice_str(c->options->sandbox),
				       .self = c->self,
				       .n_self = c->n_self,
				       .leaf_key = c->leaf_key,
				       .ticket_keys = c->ticket_keys,
				       .ledger = c->ledger,
				       .fingerprint_key = c->fingerprint_key,
				       .vault = c->vault,
				       .placeholder_key = c->placeholder_key};
	process_become("cage-worker");
	process_die_with(parent);
	if (!vault_read_only(c->vault))
		_exit(1);
	keep[n++] = control;
	keep[n++] = signer;
	keep[n++] = c->wake;
	keep[n++] = c->living[1];
	for (size_t i = 0; i < c->n_listeners; i++)
		keep[n++] = config.listeners[i];
	process_keep_fds(keep, n);
	keep_ring(c, (int)child_ring(ch));
	worker_run(&config);
}

/* ---- in the master ---- */

/* The signer's ends of new sockets to all running workers; the workers get theirs. */
static void connect_workers(struct children *c, int clients[LIMIT_WORKERS])
{
	struct control msg = {.type = CONTROL_SIGNER};
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		clients[i] = -1;
	for (size_t i = 2; i < c->n; i++) {
		int ends[2];
		if (!child_is_running(&c->list[i]) || !control_pair(ends))
			continue;
		clients[c->list[i].index] = ends[0];
		child_tell(&c->list[i], &msg, ends[1]);
		close(ends[1]);
	}
}

static pid_t fork_signer(struct children *c, int control)
{
	int clients[LIMIT_WORKERS];
	pid_t parent = getpid();
	connect_workers(c, clients);
	pid_t pid = fork();
	if (pid == 0)
		run_signer(c, parent, control, clients);
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	return pid;
}

/* New random upper bits for the ids of this worker: unique over workers and restarts without asking anybody, and the log
 * writer takes no others from it. */
static void give_ids(struct child *worker)
{
	uint32_t r = 0;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		abort();
	worker->all->log_shared->id_space[child_ring(worker)] = r >> (AUDIT_ID_BITS - 32);
}

static pid_t fork_worker(struct child *ch, int control)
{
	struct children *c = ch->all;
	struct control msg = {.type = CONTROL_CLIENT, .index = ch->index};
	pid_t parent = getpid();
	int ends[2];
	if (!control_pair(ends))
		return -1;
	give_ids(ch);
	pid_t pid = fork();
	if (pid == 0)
		run_worker(c, parent, ch, control, ends[1]);
	if (pid > 0)
		child_tell(children_signer(c), &msg, ends[0]);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

pid_t child_fork(struct child *ch, int control)
{
	pid_t pid = -1;
	switch (ch->kind) {
	case CHILD_LOGGER:
		ch->all->on_log_start(ch->all);
		pid = fork();
		if (pid == 0)
			run_logger(ch->all, control);
		break;
	case CHILD_SIGNER:
		pid = fork_signer(ch->all, control);
		break;
	case CHILD_WORKER:
		pid = fork_worker(ch, control);
		break;
	}
	return pid;
}
