/* Secrets that are read from Azure Key Vault (`from: {keyvault: URL}`): when they are read, and what becomes of it.
 *
 * The master asks nobody itself. For each round it forks a reader, a process that gets a token of the machine's identity, asks the
 * vaults, tells the values through a pipe, and ends: whatever a network may send is parsed there, without keys, the log and the
 * vault's memory, and no token outlives a round. */
#ifndef CAGE_PROXY_KEYVAULT_H
#define CAGE_PROXY_KEYVAULT_H

#include "core/base/text.h"
#include "core/net/loop.h"
#include "core/net/vet.h"
#include "proxy/sources.h"

/* ---- for the master ---- */

struct keyvault;

/* What it needs of its owner, and tells it. */
struct keyvault_config {
	struct loop *loop;
	struct sources *sources;
	void *owner;
	/* A reader of these secrets of the policy, a bit each, that writes to out: its pid, or -1 with errno. */
	pid_t (*fork)(void *owner, const struct policy *p, uint64_t wanted, int out);
	/* One reading. status: of the vault's or the token service's answer; 0: there was none. */
	void (*on_read)(void *owner, const struct policy_secret *s, int status, bool is_good);
	/* Once: all secrets have their first value, or one won't have it. */
	void (*on_settled)(void *owner, bool is_good);
};

/* NULL: no memory. */
struct keyvault *keyvault_new(const struct keyvault_config *config);
void keyvault_free(struct keyvault **k);

/* That policy is in force from now on, until the next one is: all its secrets are read again, soon. */
void keyvault_use(struct keyvault *k, const struct policy *p);

/* Has each secret had a value, or was there none to read? */
bool keyvault_is_settled(const struct keyvault *k);

void keyvault_metrics(const struct keyvault *k, struct text *t);

/* ---- in the reader ---- */

struct keyvault_reader {
	const struct policy *policy;
	uint64_t wanted;
	int out;
	const struct addr_port *self; /* our own listeners: never dialled */
	size_t n_self;
};

_Noreturn void keyvault_reader_run(const struct keyvault_reader *r);

#endif
