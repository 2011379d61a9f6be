/* What a name carries: data for whoever serves the domain (THREATS T16), or a secret, canary or placeholder (T33).
 *
 * dns_tunnel_ask() is for a name that is about to leave, or to get an address: the inspectors look at it as the proxy's
 * look at hosts, and what leaves for one domain is counted. dns_tunnel_look() is for one that is already on its way for
 * somebody else, or has no room to leave: the inspectors alone, since nothing more is seen of it outside. An answer out
 * of the cache needs no second look: the name passed when it was put there, and nothing leaves. A name that a rule
 * spells out carries nothing, but that it is asked for, and when, is seen by who serves it: it is counted, too. */
#ifndef CAGE_DNS_TUNNEL_H
#define CAGE_DNS_TUNNEL_H

#include "core/audit/event.h"
#include "inspectors/chain.h"
#include "inspectors/ledger.h"

struct dns_tunnel;

/* Under that policy, which was loaded with chain_read_policy and outlives it. key: for the fingerprints of findings. NULL:
 * no memory. */
struct dns_tunnel *dns_tunnel_new(const struct policy *p, struct ledger *ledger, const unsigned char key[CHAIN_KEY]);
void dns_tunnel_free(struct dns_tunnel **t);

struct dns_look {
	enum reason reason;                   /* REASON_NONE: nothing against it */
	bool observe;                         /* the reason is only written down */
	bool hides;                           /* nobody must show the name */
	const struct audit_finding *findings; /* also those that only flag; until the next look */
	size_t n_findings;
};

/* v: what policy_match_name() said, which is not a refusal that is enforced. */
struct dns_look dns_tunnel_ask(struct dns_tunnel *t, const struct policy_verdict *v, const struct host *host,
			       struct slice sandbox);

/* The same of a question that does not leave: nothing is counted. */
struct dns_look dns_tunnel_look(struct dns_tunnel *t, const struct policy_verdict *v, const struct host *host,
				struct slice sandbox);

/* Must nobody show that name, which is refused? */
bool dns_tunnel_hides(struct dns_tunnel *t, const struct host *host);

#endif
