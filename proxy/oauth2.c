/* Who asks for tokens, and who waits for them. */
#include "proxy/oauth2.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "proxy/oauth2_private.h"
#include "proxy/worker.h"

/* Somebody who waits for the exchange of a grant. */
struct waiter {
	struct waiter *next;
	const struct grant *grant;
	void (*came)(void *arg);
	void *arg;
};

struct oauth2 {
	struct worker *worker;
	struct token_cache cache;
	unsigned char key[GRANT_KEY]; /* of this worker alone: what grants are told apart by says nothing of values */
	struct waiter *waiting;
	struct waiter *due; /* to be called now */
};

struct oauth2 *oauth2_new(struct worker *w)
{
	struct oauth2 *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->worker = w;
	if (RAND_bytes(o->key, sizeof(o->key)) == 1)
		return o;
	free(o);
	return NULL;
}

/* ---- waiting ---- */

/* Takes out of *list who has that grant (NULL: any) and arg (NULL: any). */
static struct waiter *take_out(struct waiter **list, const struct grant *g, const void *arg)
{
	struct waiter *out = NULL, **last = &out;
	while (*list) {
		struct waiter *w = *list;
		if ((g && w->grant != g) || (arg && w->arg != arg)) {
			list = &w->next;
			continue;
		}
		*list = w->next;
		w->next = NULL;
		*last = w;
		last = &w->next;
	}
	return out;
}

static void drop(struct waiter *list)
{
	while (list) {
		struct waiter *w = list;
		list = w->next;
		free(w);
	}
}

void oauth2_forget(struct oauth2 *o, const void *arg)
{
	if (!o)
		return;
	drop(take_out(&o->waiting, NULL, arg));
	drop(take_out(&o->due, NULL, arg));
}

static void make_due(struct oauth2 *o, const struct grant *g)
{
	struct waiter **last = &o->due;
	while (*last)
		last = &(*last)->next;
	*last = take_out(&o->waiting, g, NULL);
}

/* Each is off the list when it is called, and what it does may take others off and grants out of the cache. */
static void call_due(struct oauth2 *o)
{
	while (o->due) {
		struct waiter *w = o->due;
		void (*came)(void *) = w->came;
		void *arg = w->arg;
		o->due = w->next;
		free(w);
		came(arg);
	}
}

/* Once for each who asks, however often. */
static bool wait_for(struct oauth2 *o, const struct grant *g, void (*came)(void *), void *arg)
{
	for (const struct waiter *w = o->waiting; w; w = w->next)
		if (w->grant == g && w->arg == arg)
			return true;
	struct waiter *w = malloc(sizeof(*w));
	if (!w)
		return false;
	*w = (struct waiter){.next = o->waiting, .grant = g, .came = came, .arg = arg};
	o->waiting = w;
	return true;
}

/* ---- fetching ---- */

static uint64_t now_us(const struct oauth2 *o)
{
	return loop_now_us(o->worker->loop);
}

static void remember_failure(struct oauth2 *o, struct grant *g)
{
	g->failed_until_us = now_us(o) + (uint64_t)LIMIT_TOKEN_FAILED_MS * 1000u;
}

static void on_fetched(void *arg, const struct token_reply *reply)
{
	struct grant *g = arg;
	struct oauth2 *o = g->owner;
	bool kept = reply && cache_put(&o->cache, g, reply->token, reply->life_s, now_us(o));
	if (reply && !kept)
		say("a token can't be kept in locked memory: raise RLIMIT_MEMLOCK (ulimit -l)");
	if (!kept)
		remember_failure(o, g);
	g->fetch = NULL;
	make_due(o, g);
	call_due(o);
}

/* ---- asking ---- */

/* With its length before it, so that two parts can't be taken for others. */
static void put_part(struct text *t, struct slice s)
{
	text_put_u64(t, s.len);
	text_put_char(t, ' ');
	text_put(t, s);
}

static void put_parts(struct text *t, const struct policy_secret *s, struct slice value)
{
	const struct policy_oauth2 *conf = s->oauth;
	put_part(t, s->id);
	text_put_u64(t, s->use);
	text_put(t, conf->basic ? SLICE(" basic ") : SLICE(" form "));
	put_part(t, conf->token_url.host.text);
	text_put_u64(t, conf->token_url.port);
	text_put_char(t, ' ');
	put_part(t, conf->token_url.path);
	put_part(t, conf->token_url.query);
	put_part(t, conf->client_id);
	put_part(t, conf->scope);
	put_part(t, conf->audience);
	put_part(t, value);
}

/* What tells grants apart: everything that a token depends on. */
static bool grant_key(const struct oauth2 *o, const struct policy_secret *s, struct slice value,
		      unsigned char key[GRANT_KEY])
{
	static char room[LIMIT_SECRET_VALUE + LIMIT_TARGET + KIB(8)];
	struct text t = text_in(room, sizeof(room));
	unsigned len = 0;
	put_parts(&t, s, value);
	bool ok = text_ok(&t) &&
		  HMAC(EVP_sha256(), o->key, sizeof(o->key), (const unsigned char *)room, t.len, key, &len);
	OPENSSL_cleanse(room, t.len);
	return ok && len == GRANT_KEY;
}

static struct grant *grant_for(struct oauth2 *o, const struct policy_secret *s, struct slice value)
{
	unsigned char key[GRANT_KEY];
	cache_expire(&o->cache, now_us(o));
	struct grant *g = grant_key(o, s, value, key) ? cache_grant(&o->cache, key, s->id) : NULL;
	OPENSSL_cleanse(key, sizeof(key));
	if (g)
		g->owner = o;
	return g;
}

enum oauth2_answer oauth2_token(struct oauth2 *o, struct generation *gen, const struct policy_secret *secret,
				struct slice value, void (*came)(void *arg), void *arg, struct slice *token)
{
	struct grant *g = grant_for(o, secret, value);
	if (!g)
		return OAUTH2_FAILED;
	enum grant_state state = grant_look(g, now_us(o), token);
	if (state == GRANT_FRESH)
		return OAUTH2_READY;
	if (!g->fetch && now_us(o) >= g->failed_until_us) {
		struct fetch_order order = {o->worker, gen, secret};
		g->fetch = fetch_start(&order, value, on_fetched, g);
		if (!g->fetch)
			remember_failure(o, g);
	}
	if (state == GRANT_OLD)
		return OAUTH2_READY;
	return g->fetch && wait_for(o, g, came, arg) ? OAUTH2_WAIT : OAUTH2_FAILED;
}

/* ---- ends ---- */

void oauth2_evict(struct oauth2 *o, uint32_t slot)
{
	for (struct grant *g = o->cache.grants; g; g = g->next) {
		if (!g->fetch || fetch_slot(g->fetch) != slot)
			continue;
		fetch_cancel(&g->fetch, REASON_POLICY_CHANGED);
		make_due(o, g);
	}
	call_due(o);
}

void oauth2_free(struct oauth2 **op)
{
	struct oauth2 *o = *op;
	if (!o)
		return;
	*op = NULL;
	for (struct grant *g = o->cache.grants; g; g = g->next)
		fetch_cancel(&g->fetch, REASON_SHUTTING_DOWN);
	cache_clear(&o->cache);
	drop(o->waiting);
	drop(o->due);
	OPENSSL_cleanse(o, sizeof(*o));
	free(o);
}

/* ---- what is known ---- */

uint64_t oauth2_version(struct oauth2 *o)
{
	cache_expire(&o->cache, now_us(o));
	return o->cache.version;
}

size_t oauth2_tokens(const struct oauth2 *o, const struct policy *p, struct known_item *items, size_t max)
{
	return cache_list(&o->cache, p, items, max);
}
