/* What an upstream said, vetted and cut down to what the client may hear (THREATS T17, T18): the aliases from the name that was
 * asked to its records, each allowed by the policy, and the records of the type that was asked, their addresses permitted by
 * the rule. Everything else that was in the response is gone. */
#ifndef CAGE_DNS_ANSWER_H
#define CAGE_DNS_ANSWER_H

#include "core/base/addr.h"
#include "core/base/limits.h"
#include "core/base/reason.h"
#include "core/net/vet.h"
#include "dns/wire.h"

/* In one piece, so that a cache can copy it. */
struct dns_answer {
	uint32_t ttl; /* seconds, of all of it */
	uint16_t type;
	uint16_t len;  /* bytes of data */
	uint8_t rcode; /* NOERROR or NXDOMAIN */
	uint8_t n_aliases, n_records;
	enum reason refused; /* not REASON_NONE: why there is no answer, which is all it says */
	bool hides;          /* nobody must show the name that was asked for; the asker's to say */
	char data
		[]; /* the aliases in their order, a length byte before each; then the data of the records, two before each */
};

/* Room for one. */
union dns_answer_room {
	struct dns_answer answer;
	char bytes[sizeof(struct dns_answer) + LIMIT_DNS_ANSWER];
};

/* REASON_NONE when the policy allows the name; else why not. */
typedef enum reason (*dns_name_check)(void *arg, const struct dns_name *name);

struct dns_answer_rules {
	struct vet vet;            /* of the rule that allows the name */
	uint32_t ttl_min, ttl_max; /* seconds */
	dns_name_check check;      /* for each alias */
	void *arg;
};

/* Reads the response to that question. REASON_NONE, or why nothing of it may be used: ALIAS_NOT_ALLOWED, what vet_addresses()
 * says, UPSTREAM_MALFORMED (also: aliases in a circle, or more of them or of bytes than the bounds), UPSTREAM_TRUNCATED,
 * UPSTREAM_UNREACHABLE (the upstream says that it failed). "There is none" is an answer. */
enum reason dns_answer_read(struct slice packet, const struct dns_name *name, uint16_t type,
			    const struct dns_answer_rules *rules, union dns_answer_room *out);

static inline size_t dns_answer_size(const struct dns_answer *a)
{
	return sizeof(*a) + a->len;
}

/* The address with that number of an answer of type A or AAAA; false when there are fewer. */
bool dns_answer_address(const struct dns_answer *a, size_t number, struct addr *out);

/* Writes it as the answer to the query of w, with what is left of its time. */
void dns_answer_write(const struct dns_answer *a, uint32_t ttl, struct dns_writer *w);

#endif
