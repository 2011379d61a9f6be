/* Sets of what is known, rebuilt from the vault when its version moves. */
#include "proxy/keyring.h"

#include <stdlib.h>

#include "inspectors/chain.h"
#include "proxy/oauth2.h"
#include "core/proc/placeholder.h"
#include "proxy/vault.h"

#define ITEMS_MAX (VAULT_SLOTS * LIMIT_SECRET_VERSIONS + LIMIT_SECRETS + LIMIT_TOKENS + 1)

/* Views leave short runs of base64 and hex alone, so these are looked for as they stand. */
#define KNOWN_IN_TEXTS (KNOWN_IN_VIEWS | 1u << KNOWN_BASE64 | 1u << KNOWN_HEX)

struct keyring {
	struct generation *gen;
	struct known_set *redacted; /* values */
	uint64_t vault_version, token_version;
};

/* The index of the secret that has that slot; behind the last one: a policy before this had it. */
static unsigned owner_of(const struct policy *p, unsigned slot)
{
	unsigned i = 0;
	while (i < p->n_secrets && p->secrets[i].slot != slot)
		i++;
	return i;
}

/* Values first; *n counts on. */
static void add_values(const struct keyring *k, struct known_item *items, size_t *n)
{
	const struct policy *p = k->gen->policy;
	const struct worker *w = k->gen->worker;
	for (unsigned place = 0; place < VAULT_SLOTS; place++) {
		struct slice values[LIMIT_SECRET_VERSIONS];
		unsigned slot = vault_slot_at(w->config->vault, place);
		size_t n_values = vault_known(w->config->vault, slot, values);
		for (size_t v = 0; v < n_values; v++)
			items[(*n)++] = (struct known_item){KNOWN_VALUE, owner_of(p, slot), values[v]};
	}
	*n += oauth2_tokens(w->oauth2, k->gen->policy, items + *n, LIMIT_TOKENS);
}

static void add_placeholders(const struct keyring *k, struct known_item *items, size_t *n)
{
	const struct policy *p = k->gen->policy;
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].placeholder.len > 0)
			items[(*n)++] = (struct known_item){KNOWN_PLACEHOLDER, (unsigned)i, p->secrets[i].placeholder};
	items[(*n)++] = (struct known_item){KNOWN_RANDOM_PLACEHOLDER, 0, SLICE(PLACEHOLDER_PREFIX)};
}

/* The sets as they are to be now; false without memory. */
static bool make_sets(struct keyring *k)
{
	struct known_item *items = calloc(ITEMS_MAX, sizeof(*items));
	size_t n = 0;
	if (!items)
		return false;
	add_values(k, items, &n);
	struct known_set *redacted = known_set_new(items, n, KNOWN_REDACTED);
	add_placeholders(k, items, &n);
	struct known_set *seen = known_set_new(items, n, KNOWN_IN_TEXTS);
	free(items);
	if (redacted && seen) {
		known_set_unref(&k->redacted);
		k->redacted = known_set_ref(redacted);
		chain_set_known(k->gen->chain, seen);
	}
	bool ok = redacted && seen;
	if (redacted)
		known_set_unref(&redacted);
	if (seen)
		known_set_unref(&seen);
	return ok;
}

bool keyring_refresh(struct keyring *k)
{
	const struct worker *w = k->gen->worker;
	uint64_t vault = vault_version(w->config->vault), tokens = oauth2_version(w->oauth2);
	if (k->redacted && vault == k->vault_version && tokens == k->token_version)
		return true;
	if (!make_sets(k))
		return false;
	k->vault_version = vault;
	k->token_version = tokens;
	return true;
}

struct keyring *keyring_new(struct generation *g)
{
	struct keyring *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->gen = g;
	if (!keyring_refresh(k))
		keyring_free(&k);
	return k;
}

void keyring_free(struct keyring **kp)
{
	struct keyring *k = *kp;
	if (!k)
		return;
	*kp = NULL;
	if (k->redacted)
		known_set_unref(&k->redacted);
	free(k);
}

struct known_set *keyring_values(const struct keyring *k)
{
	return k->redacted;
}

const struct slice *keyring_placeholders(const struct keyring *k, struct slice sandbox, struct arena *arena)
{
	const struct policy *p = k->gen->policy;
	struct slice *list = arena_array(arena, p->n_secrets + 1, sizeof(*list));
	if (list)
		list[p->n_secrets] = SLICE("cage-redacted");
	for (size_t i = 0; list && i < p->n_secrets; i++) {
		char room[PLACEHOLDER_RANDOM];
		list[i] = placeholder_of(&p->secrets[i], sandbox, k->gen->worker->config->placeholder_key, room);
		if (list[i].ptr == room)
			list[i] = arena_dup(arena, list[i]);
		if (!list[i].ptr)
			return NULL;
	}
	return list;
}
