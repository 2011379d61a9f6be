/* Secrets are put into a request: into the slots that the policy names, of requests to the rules that have them, after all
 * inspectors. A plan is made first, without any value: it says which slots hold a placeholder, and what the request looks like
 * without them, so that whatever else of a placeholder is found in it is out of place.
 *
 *	inject_plan -> (the chain looks at plan->head and plan->target) -> inject_head -> inject_body ...
 *
 * Nothing here knows sockets or the vault: values come from the caller, and what carries one is in an arena that the
 * caller cleanses. */
#ifndef CAGE_PROXY_INJECT_H
#define CAGE_PROXY_INJECT_H

#include "core/base/arena.h"
#include "core/base/reason.h"
#include "core/http/message.h"
#include "core/http/url.h"
#include "core/policy/policy.h"

/* What may be put in here. */
struct inject_secret {
	const struct policy_secret *secret;
	struct slice placeholder; /* of this sandbox */
};

/* Keys are not put in: a request is signed with them. */
bool secret_is_put_in(const struct policy_secret *s);

struct inject_plan {
	const struct inject_secret *secrets;
	size_t n_secrets;
	/* The request with "-" for each placeholder that stands where it may: for the inspectors to look at. The
	 * request itself when there is none. */
	const struct message *head;
	const struct target *target;
	uint64_t
		used; /* secrets of the list that have a slot filled, a bit each; those with in_body are decided later */
};

/* REASON_NONE, REASON_SECRET_SLOT (`require`, and a slot holds something else; *detail says which slot) or REASON_INTERNAL. secrets:
 * the rule's, if they may go in at all (over TLS, or the rule has `plaintext`), else none. */
enum reason inject_plan(const struct inject_secret *secrets, size_t n, const struct message *head,
			const struct target *target, struct arena *arena, struct inject_plan *plan,
			const char **detail);

/* The request with the values in it. *head and *target come as they were planned, and are left so when it fails; what does not
 * change stays where it is. values[i] is that of plan->secrets[i]; only those in plan->used are looked at. Fields that
 * change and the path and query are made in `secret`, which the caller cleanses. A path that changes has no loose form any
 * more. CAGE_EPROTO: a value has CR, LF or NUL, or is shorter than LIMIT_SECRET_VALUE_MIN. */
enum cage_status inject_head(const struct inject_plan *plan, const struct slice *values, struct message *head,
			     struct target *target, struct arena *secret) MUST_CHECK;

/* ---- bodies ---- */

/* How a value is written into a body, by what the body is. */
enum inject_escape { INJECT_RAW, INJECT_JSON, INJECT_FORM };
enum inject_escape inject_escape_for(const struct message *head);

/* Can values be put into it so that everybody reads it in the same way: one type, an ASCII-like charset, no coding? */
bool inject_may_change_body(const struct message *head);

typedef void inject_sink(void *arg, struct slice bytes);

struct body_injector;

/* Replaces placeholders of secrets with in_body, in a text that comes in pieces: those in plan->secrets that have it and a value
 * (values[i].len > 0). Keeps back only what may be the beginning of a placeholder. The plan's list outlives it; values are
 * copied. NULL: no memory. */
struct body_injector *body_injector_new(const struct inject_plan *plan, const struct slice *values,
					enum inject_escape how, inject_sink *sink, void *arg);
/* CAGE_ELIMIT: more than LIMIT_BODY_SECRETS placeholders. CAGE_EPROTO: a placeholder in a body with NULs. */
enum cage_status body_injector_feed(struct body_injector *b, struct slice piece) MUST_CHECK;
enum cage_status body_injector_end(struct body_injector *b) MUST_CHECK;
uint64_t body_injector_used(const struct body_injector *b);
void body_injector_free(struct body_injector **b); /* cleanses */

#endif
