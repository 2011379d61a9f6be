/* Policies in use by a worker, and what is built from each: the TLS context with its trust, the
 * resolver, and the inspectors. */
#include <stdlib.h>

#include "core/proc/policy_store.h"
#include "inspectors/chain.h"
#include "proxy/external.h"
#include "proxy/keyring.h"
#include "proxy/upstream.h"
#include "proxy/worker.h"

static struct resolver *make_resolver(struct worker *w, const struct policy *p)
{
	struct addr_port *servers = calloc(p->n_resolvers + 1, sizeof(*servers));
	if (!servers)
		return NULL;
	for (size_t i = 0; i < p->n_resolvers; i++)
		servers[i] = (struct addr_port){p->resolvers[i].addr, p->resolvers[i].port};
	struct resolver *r = resolver_new(w->loop, servers, p->n_resolvers);
	free(servers);
	return r;
}

/* Nothing to do where the policy has no external inspector. */
static bool start_external(struct generation *g, const struct policy *p)
{
	const struct external_conf *conf = external_conf_of(p);
	if (!conf)
		return true;
	g->external = external_link_new(g->worker->loop, conf);
	if (g->external)
		chain_set_external(g->chain, external_link_talk(g->external));
	return g->external != NULL;
}

/* From now on nothing of a response stays in OpenSSL's buffers. */
static bool start_secrets(struct generation *g)
{
	SSL_CTX_set_options(g->client_ctx, SSL_OP_CLEANSE_PLAINTEXT);
	g->keyring = keyring_new(g);
	return g->keyring != NULL;
}

void generation_hang_up(struct generation *g)
{
	if (g->chain)
		chain_set_external(g->chain, NULL);
	external_link_close(&g->external);
}

static void generation_free(struct generation *g)
{
	SSL_CTX_free(g->client_ctx);
	resolver_free(&g->resolver);
	generation_hang_up(g);
	keyring_free(&g->keyring);
	chain_free(&g->chain);
	if (g->policy) {
		policy_store_unmap(g->slot);
		g->worker->slots[g->slot] = NULL;
	}
	free(g);
}

/* What stays known of the seat. */
static void note_seat(struct generation *g, size_t i)
{
	const struct seat *seat = &g->worker->seats[i];
	g->seat = i;
	g->slot = seat->slot;
	g->gen = seat->policy_gen;
	g->sandbox_len = seat->id_len;
	memcpy(g->sandbox, seat->id, seat->id_len);
}

void generation_put_away(struct generation **gp)
{
	struct generation *g = *gp;
	g->worker->slots[g->slot] = NULL;
	g->policy = NULL; /* so that it stays mapped: the seat has it still */
	generation_unref(gp);
}

struct generation *generation_new(struct worker *w, size_t seat)
{
	const struct policy *p = w->seats[seat].policy;
	struct generation *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->worker = w;
	g->refs = 1;
	g->client_ctx = tls_client_ctx_new(&p->trust, upstream_keep_session);
	bool asks = policy_asks_resolvers(p);
	g->resolver = asks ? make_resolver(w, p) : NULL;
	g->chain = chain_new(p, w->config->ledger, w->config->fingerprint_key);
	if (!g->client_ctx || (asks && !g->resolver) || !g->chain || !start_external(g, p)) {
		generation_free(g);
		return NULL;
	}
	g->policy = p;
	note_seat(g, seat);
	audit_policy_init(&g->logged, p->name, slice_str(p->sha), p->gen);
	w->slots[g->slot] = g;
	if (p->n_secrets > 0 && !start_secrets(g))
		generation_put_away(&g);
	return g;
}

bool generation_is_current(const struct generation *g)
{
	return g->worker->current[g->seat] == g;
}

struct slice generation_sandbox(const struct generation *g)
{
	return g->sandbox_len > 0 ? slice_of(g->sandbox, g->sandbox_len) : g->worker->config->sandbox;
}

struct generation *generation_ref(struct generation *g)
{
	g->refs++;
	return g;
}

void generation_unref(struct generation **gp)
{
	struct generation *g = *gp;
	if (!g)
		return;
	*gp = NULL;
	if (--g->refs == 0)
		generation_free(g);
}
