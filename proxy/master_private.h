/* What the master of cage-proxy holds beside what every master does, and what it gives to the processes that it makes. */
#ifndef CAGE_PROXY_MASTER_PRIVATE_H
#define CAGE_PROXY_MASTER_PRIVATE_H

#include "core/proc/master.h"
#include "inspectors/chain.h"
#include "proxy/keyvault.h"
#include "proxy/metrics.h"
#include "proxy/options.h"
#include "core/proc/placeholder.h"
#include "proxy/sources.h"
#include "proxy/tls.h"
#include "proxy/vault.h"

struct proxy {
	struct master master;
	const struct options *options;
	int listeners[LIMIT_WORKERS][LIMIT_LISTENERS];
	size_t n_listeners;
	char ca_dir[4096];
	char ca_file[4200];
	EVP_PKEY *leaf_key;
	unsigned char ticket_keys[TLS_TICKET_KEYS];
	unsigned char fingerprint_key[CHAIN_KEY];
	unsigned char placeholder_key[PLACEHOLDER_KEY];
	struct vault *vault;   /* values of secrets: for the workers */
	struct ledger *ledger; /* counters of the workers */
	struct metrics *metrics;
	struct sources *sources;
	const struct policy *policies[1 + LIMIT_SANDBOXES]; /* a list to hand out */
	struct event *look;                                 /* at the sources */
	struct keyvault *keyvault;
	bool is_at_work; /* all children are ready */
};

/* Makes the signer or a worker: for struct children_program. */
pid_t proxy_fork(struct child *ch, int control);

/* Makes a reader of secrets: for struct keyvault_config. */
pid_t proxy_fork_reader(void *proxy, const struct policy *p, uint64_t wanted, int out);

/* Frees what only workers need: tokens, ticket keys, secrets, and the leaves' private key. */
void proxy_drop_secrets(void *proxy);

#endif
