/* Between the files of sign.h:
 *
 *	sign_claim.c		what the client's AWS signature says of itself
 *	sign_query.c		parameters as AWS writes them
 *	sign_canonical.c	the request as AWS sees it
 *	sign_sigv4.c		the body, the key, the signature
 *	sign_hmac.c		signatures as a policy describes them
 *	sign.c			what both kinds need */
#ifndef CAGE_PROXY_SIGN_PRIVATE_H
#define CAGE_PROXY_SIGN_PRIVATE_H

#include "proxy/sign.h"

#define SIGN_SHA256 32
#define SIGN_HEX 64

/* ---- sign.c ---- */

/* Takes the fields of that name out of head and puts one in, at the end. The list is a new one, in the arena. */
bool sign_set_field(struct message *head, struct slice name, struct slice value, struct arena *arena);

/* A malformed or missing thing: says so, and is REASON_SECRET_SLOT. */
enum reason sign_refuse(const char **detail, const char *sentence);

/* ---- sign_query.c ---- */

/* One parameter of a query. */
struct sign_param {
	struct slice raw;         /* "name=value" as it is sent */
	struct slice name, value; /* decoded, then encoded in the one way that AWS knows */
};

struct sign_query {
	struct sign_param *params; /* in the order in which they are sent */
	size_t n;
};

/* query: with its '?'. false without memory. */
bool sign_query_parse(struct slice query, struct arena *arena, struct sign_query *out);

/* The last parameter of that name; NULL: there is none. *n: how many there are. */
struct sign_param *sign_query_find(const struct sign_query *q, struct slice name, size_t *n);

/* Another value, given plainly. */
bool sign_query_set(struct sign_param *p, struct slice value, struct arena *arena);

/* With its '?'; ptr NULL without memory. */
struct slice sign_query_write(const struct sign_query *q, struct arena *arena);

/* Sorted, without the parameter of that name; ptr NULL without memory. */
struct slice sign_query_canonical(const struct sign_query *q, struct slice without, struct arena *arena);

/* ---- sign_claim.c ---- */

/* What the client's signature says of itself. */
struct sign_claim {
	bool in_query;                      /* else in its Authorization field */
	struct slice key_id;                /* of the client */
	struct slice date, region, service; /* the scope */
	struct slice time;                  /* "20260131T235959Z" */
	struct slice *names;                /* of the signed fields, lower case, sorted; `host` is among them */
	size_t n_names;
};

enum reason sign_read_claim(const struct message *head, const struct sign_query *q, struct arena *arena,
			    struct sign_claim *out, const char **detail);

/* ---- sign_canonical.c ---- */

/* A request that is being signed. */
struct signing {
	struct message *head;
	struct target *target;
	struct arena *arena;
	struct sign_query query;
	struct sign_claim claim;
	struct slice key_id;
	struct slice host;
	struct slice length; /* the content length that is sent; empty: none is */
	struct slice names;  /* "host;x-amz-date" */
	struct slice body_hash;
	char signature[SIGN_HEX];
};

/* S3 differs from all other services: it takes the path as it is, and bodies that are not signed. */
bool sign_is_s3(const struct sign_claim *c);

/* Fills host, length and names: of the client's list, those that are sent. */
bool sign_prepare(struct signing *s);

/* The hash of all but the signature itself. */
bool sign_hash_request(const struct signing *s, unsigned char out[SIGN_SHA256]);

#endif
