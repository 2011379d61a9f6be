/* Tokens in memory that is locked and left out of core dumps, and when each is to be replaced, to be forgotten by the
 * redaction, and to be overwritten. */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proxy/oauth2_private.h"

#define SECOND_US 1000000u
/* A request that began while the token was good may have borrowed it; it ends within LIMIT_TOTAL_MS, give or take a look
 * at the clock. */
#define BORROWED_US ((uint64_t)LIMIT_TOTAL_MS * 1000u + 60 * (uint64_t)SECOND_US)

struct token {
	struct token *next; /* the one before it */
	char *bytes;
	size_t len, mapped;
	uint64_t fresh_until_us, good_until_us;
	bool is_good; /* counted as such */
};

/* ---- tokens ---- */

static void token_free(struct token *t)
{
	if (t->bytes) {
		OPENSSL_cleanse(t->bytes, t->mapped);
		munmap(t->bytes, t->mapped);
	}
	free(t);
}

static bool lock_memory(void *p, size_t n)
{
	return mlock(p, n) == 0 && madvise(p, n, MADV_DONTDUMP) == 0;
}

static struct token *token_new(struct slice bytes)
{
	struct token *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	t->mapped = (bytes.len + page - 1) / page * page;
	void *p = mmap(NULL, t->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t->bytes = p == MAP_FAILED ? NULL : p;
	if (!t->bytes || !lock_memory(t->bytes, t->mapped)) {
		token_free(t);
		return NULL;
	}
	memcpy(t->bytes, bytes.ptr, bytes.len);
	t->len = bytes.len;
	return t;
}

static uint64_t between(uint64_t v, uint64_t min, uint64_t max)
{
	return v < min ? min : v > max ? max : v;
}

static void token_set_times(struct token *t, uint64_t life_s, uint64_t now_us)
{
	uint64_t until_early = life_s > LIMIT_TOKEN_EARLY_S ? life_s - LIMIT_TOKEN_EARLY_S : 0;
	uint64_t fresh_s = between(until_early, LIMIT_TOKEN_FRESH_MIN_S, LIMIT_TOKEN_FRESH_MAX_S);
	uint64_t good_s = between(life_s, fresh_s, LIMIT_TOKEN_LIFE_S);
	t->fresh_until_us = now_us + fresh_s * SECOND_US;
	t->good_until_us = now_us + good_s * SECOND_US;
}

/* ---- grants ---- */

static struct grant *grant_new(const unsigned char key[GRANT_KEY], struct slice id)
{
	struct grant *g = calloc(1, sizeof(*g));
	if (!g || id.len > sizeof(g->id)) {
		free(g);
		return NULL;
	}
	memcpy(g->key, key, GRANT_KEY);
	memcpy(g->id, id.ptr, id.len);
	g->id_len = id.len;
	return g;
}

static void grant_free(struct grant *g)
{
	while (g->tokens) {
		struct token *t = g->tokens;
		g->tokens = t->next;
		token_free(t);
	}
	OPENSSL_cleanse(g->key, sizeof(g->key));
	free(g);
}

struct grant *cache_grant(struct token_cache *c, const unsigned char key[GRANT_KEY], struct slice id)
{
	for (struct grant *g = c->grants; g; g = g->next)
		if (CRYPTO_memcmp(g->key, key, GRANT_KEY) == 0)
			return g;
	struct grant *g = c->n_grants < LIMIT_TOKENS ? grant_new(key, id) : NULL;
	if (!g)
		return NULL;
	g->next = c->grants;
	c->grants = g;
	c->n_grants++;
	return g;
}

enum grant_state grant_look(const struct grant *g, uint64_t now_us, struct slice *token)
{
	const struct token *t = g->tokens;
	if (!t || now_us >= t->good_until_us)
		return GRANT_NONE;
	*token = slice_of(t->bytes, t->len);
	return now_us < t->fresh_until_us ? GRANT_FRESH : GRANT_OLD;
}

/* ---- time ---- */

static void expire_tokens(struct token_cache *c, struct grant *g, uint64_t now_us)
{
	struct token **link = &g->tokens;
	while (*link) {
		struct token *t = *link;
		if (t->is_good && now_us >= t->good_until_us) {
			t->is_good = false;
			c->n_good--;
			c->version++;
		}
		if (now_us < t->good_until_us + BORROWED_US) {
			link = &t->next;
			continue;
		}
		*link = t->next;
		token_free(t);
		c->n_kept--;
	}
}

/* Makes room; the grants stay. */
static void expire_all_tokens(struct token_cache *c, uint64_t now_us)
{
	for (struct grant *g = c->grants; g; g = g->next)
		expire_tokens(c, g, now_us);
}

bool cache_put(struct token_cache *c, struct grant *g, struct slice token, uint64_t life_s, uint64_t now_us)
{
	expire_all_tokens(c, now_us);
	struct token *newest = g->tokens;
	if (newest && newest->is_good && slice_eq(slice_of(newest->bytes, newest->len), token)) {
		token_set_times(newest, life_s, now_us); /* some services give the same one again */
		return true;
	}
	struct token *t = c->n_good < LIMIT_TOKENS && c->n_kept < LIMIT_TOKENS_KEPT ? token_new(token) : NULL;
	if (!t)
		return false;
	token_set_times(t, life_s, now_us);
	t->is_good = true;
	t->next = g->tokens;
	g->tokens = t;
	c->n_good++;
	c->n_kept++;
	c->version++;
	return true;
}

void cache_expire(struct token_cache *c, uint64_t now_us)
{
	struct grant **link = &c->grants;
	expire_all_tokens(c, now_us);
	while (*link) {
		struct grant *g = *link;
		if (g->tokens || g->fetch || now_us < g->failed_until_us) {
			link = &g->next;
			continue;
		}
		*link = g->next;
		grant_free(g);
		c->n_grants--;
	}
}

void cache_clear(struct token_cache *c)
{
	while (c->grants) {
		struct grant *g = c->grants;
		c->grants = g->next;
		grant_free(g);
	}
	*c = (struct token_cache){.version = c->version + 1};
}

/* ---- the list ---- */

/* n_secrets: the policy has no such secret. */
static size_t index_of(const struct policy *p, const struct grant *g)
{
	size_t i = 0;
	while (i < p->n_secrets && !slice_eq(p->secrets[i].id, slice_of(g->id, g->id_len)))
		i++;
	return i;
}

size_t cache_list(const struct token_cache *c, const struct policy *p, struct known_item *items, size_t max)
{
	size_t n = 0;
	for (const struct grant *g = c->grants; g; g = g->next) {
		size_t index = index_of(p, g); /* behind the last one: a policy before this had it */
		for (const struct token *t = g->tokens; t && n < max; t = t->next)
			if (t->is_good)
				items[n++] = (struct known_item){KNOWN_VALUE, (unsigned)index, {t->bytes, t->len}};
	}
	return n;
}
