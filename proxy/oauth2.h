/* Tokens that are got for secrets (OAuth 2: client credentials, and JWT assertions of Google's service accounts), so that the
 * sandbox sees neither. One cache per worker.
 *
 * How to use it: when a request needs a secret whose `use` is SECRET_CREDENTIALS or SECRET_GOOGLE_JWT, ask for its token,
 * with the value from the vault.
 *
 *	OAUTH2_READY	*token is what goes in the place of the placeholder
 *	OAUTH2_WAIT	`came` is called once, from the loop, when there is one or there will be none: ask again then. Whoever
 *			goes away before calls oauth2_forget().
 *	OAUTH2_FAILED	REASON_SECRET_UNAVAILABLE; why stands in the log
 *
 * One exchange serves all who wait. It goes to token_url under the allow rule that covers a POST to it, verified like every
 * other, and is logged as a request and a response without `conn`. A token is got anew a while before its end, and if that
 * fails, used until then. A failure is remembered for a few seconds. */
#ifndef CAGE_PROXY_OAUTH2_H
#define CAGE_PROXY_OAUTH2_H

#include "core/policy/policy.h"
#include "inspectors/known/known.h"

struct generation;
struct oauth2;
struct worker;

/* NULL: no memory. To be made before the first generation of the worker. */
struct oauth2 *oauth2_new(struct worker *w);

/* Ends what is under way, tells nobody, cleanses all. To be freed before the generations of the worker. */
void oauth2_free(struct oauth2 **o);

enum oauth2_answer { OAUTH2_READY, OAUTH2_WAIT, OAUTH2_FAILED };

/* Never calls back before it returns. value is borrowed for the call, the token for LIMIT_TOTAL_MS: no request takes longer. */
enum oauth2_answer oauth2_token(struct oauth2 *o, struct generation *gen, const struct policy_secret *secret,
				struct slice value, void (*came)(void *arg), void *arg, struct slice *token);

/* Nobody is called any more with that arg. o may be NULL. */
void oauth2_forget(struct oauth2 *o, const void *arg);

/* The slot of a policy is needed for another: exchanges under it end. Who waits for one is called. */
void oauth2_evict(struct oauth2 *o, uint32_t slot);

/* ---- what is to be taken out of responses ---- */

/* Changes when a token comes or its time is over. */
uint64_t oauth2_version(struct oauth2 *o);

/* The tokens that are good, those that were replaced included: KNOWN_VALUE, of the secret of this policy that has the id. At most
 * LIMIT_TOKENS, which is what max should be. Bytes stay for LIMIT_TOTAL_MS after a token has left the list. */
size_t oauth2_tokens(const struct oauth2 *o, const struct policy *p, struct known_item *items, size_t max);

#endif
