/* Between the files of oauth2.h:
 *
 *	oauth2.c		who asks, who waits
 *	oauth2_cache.c		tokens and their times; knows no clock
 *	oauth2_fetch.c		one exchange with a token service
 *	oauth2_request.c	what is sent
 *	oauth2_google.c		the assertion of a service account
 *	oauth2_reply.c		what comes back
 */
#ifndef CAGE_PROXY_OAUTH2_PRIVATE_H
#define CAGE_PROXY_OAUTH2_PRIVATE_H

#include <jansson.h>

#include "core/base/limits.h"
#include "proxy/oauth2.h"

/* ---- the cache ---- */

#define GRANT_KEY 32

struct fetch;
struct token;

/* What tokens are got for: a secret with its value, and where and how. */
struct grant {
	struct grant *next;
	struct oauth2 *owner;
	unsigned char key[GRANT_KEY];
	char id[LIMIT_RULE_ID]; /* of the secret */
	size_t id_len;
	struct token *tokens; /* the newest first */
	uint64_t failed_until_us;
	struct fetch *fetch; /* under way; NULL: none */
};

struct token_cache {
	struct grant *grants;
	size_t n_grants, n_good, n_kept;
	uint64_t version;
};

enum grant_state {
	GRANT_NONE,  /* no token that is good */
	GRANT_OLD,   /* one that is, and it is time for another */
	GRANT_FRESH, /* one that is */
};

/* Finds or makes it; NULL: no memory, or too many. */
struct grant *cache_grant(struct token_cache *c, const unsigned char key[GRANT_KEY], struct slice id);

enum grant_state grant_look(const struct grant *g, uint64_t now_us, struct slice *token);

/* A new token of that life, which the cache copies into locked memory. false: there is no room. */
bool cache_put(struct token_cache *c, struct grant *g, struct slice token, uint64_t life_s, uint64_t now_us);

/* Lets go of what is over, grants that have nothing left included. */
void cache_expire(struct token_cache *c, uint64_t now_us);
size_t cache_list(const struct token_cache *c, const struct policy *p, struct known_item *items, size_t max);

/* No fetch is under way. */
void cache_clear(struct token_cache *c);

/* ---- what is sent ---- */

struct token_request {
	struct slice form;
	struct slice authorization; /* value of the field; empty: none */
};

/* All that it makes carries secrets and is in the arena. NULL, or a static text that says what is wrong. */
const char *token_request_make(const struct policy_secret *s, struct slice value, int64_t now_s, struct arena *arena,
			       struct token_request *out);

/* The signed JWT of the service account that key_file describes. */
const char *google_assertion(const struct policy_oauth2 *conf, struct slice key_file, int64_t now_s,
			     struct arena *arena, struct slice *out);

/* ---- what comes back ---- */

/* JSON that carries secrets: what jansson needs for it is cleansed. NULL: it is not an object, or no memory. */
json_t *secret_json_load(struct slice text);
void secret_json_free(json_t **json);

/* A string of an object; empty when there is none of that name. */
struct slice secret_json_text(const json_t *object, const char *name);

struct token_reply {
	json_t *json;
	struct slice token; /* in json */
	uint64_t life_s;
};

/* NULL, or a static text that says what is wrong. out is to be freed only when it is good. */
const char *token_reply_read(struct slice body, struct token_reply *out);
void token_reply_free(struct token_reply *r);

/* ---- the exchange ---- */

/* NULL: it has failed. Borrowed for the call; the fetch is gone. */
typedef void fetched(void *arg, const struct token_reply *reply);

struct fetch_order {
	struct worker *worker;
	struct generation *gen;
	const struct policy_secret *secret;
};

/* Never calls back before it returns. NULL: it has failed already, which is logged. value is borrowed for the call. */
struct fetch *fetch_start(const struct fetch_order *order, struct slice value, fetched *done, void *arg);
uint32_t fetch_slot(const struct fetch *f);

/* Ends it without a call, with that reason in the log. */
void fetch_cancel(struct fetch **f, enum reason reason);

#endif
