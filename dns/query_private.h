/* What the parts of query.h share: a query on its way to a decision, and the words about it. */
#ifndef CAGE_DNS_QUERY_PRIVATE_H
#define CAGE_DNS_QUERY_PRIVATE_H

#include "dns/query.h"

/* A query that is being decided; lives on the stack. */
struct ask {
	struct worker *worker;
	const struct dns_client *client;
	const struct dns_query *query;
	struct host host; /* its name */
	struct policy_verdict verdict;
	struct dns_look look; /* what the name carries, when it was looked at */
	bool hides;           /* the name must not be shown */
	bool is_observed;     /* a refusal of it is only written down */
	uint64_t txn;         /* 0: it does not leave */
	uint64_t start_us;    /* 0: no time to tell */
};

/* A query that waits for an upstream; a copy of all that answering needs. */
struct dns_asked {
	struct dns_waiter waiter; /* the first: it is found by this */
	struct dns_asked *next;   /* in the list of those to ask again */
	struct dns_client client;
	struct dns_query query;
	uint64_t txn, start_us;
	bool hides;
	char raw_name[DNS_NAME_WIRE];
};

/* One line of the log. false: it can't be written. */
bool query_log(const struct ask *a, enum audit_decision decision, enum reason reason, const struct addr *address);

/* Logs the refusal and answers with it: of a name as the policy's dns.denied says, of a type or a limit with REFUSED, of our
 * own lack with SERVFAIL. */
void query_refuse(const struct ask *a, enum reason reason);

/* The answer alone. */
void query_answer_rcode(const struct ask *a, enum dns_rcode rcode, enum dns_explain explain, enum reason reason);
void query_answer(const struct ask *a, const struct dns_answer *answer, uint32_t ttl);
void query_answer_address(const struct ask *a, const struct addr *addr, uint32_t ttl);

/* There is no answer that may be handed on: logs and answers that, as a failure or as a refusal. */
void query_answer_nothing(const struct ask *a, enum reason reason);

/* What query_forward() would do with it: ask, wait with those who have asked, or neither. */
enum dns_join query_place(const struct ask *a);

/* Asks an upstream for it, or waits with those who have asked. It was logged. */
void query_forward(const struct ask *a);

/* So many seconds, or until the rule ends that it was judged by. */
uint32_t query_life(const struct policy_verdict *v, uint32_t seconds);

/* From its name on. */
void query_decide(struct ask *a);

#endif
