/* The compiled policy: immutable, all of it in one arena, so that it can be mapped read-only into every worker.
 *
 * Start reading here. policy_load() turns YAML into a struct policy or into a list of errors with file, line and
 * column. policy_match_connect(), policy_match_request() and policy_match_name() decide; they look up, they don't scan: the cost does not
 * grow with the number of rules. */
#ifndef CAGE_POLICY_POLICY_H
#define CAGE_POLICY_POLICY_H

#include "core/base/addr.h"
#include "core/base/arena.h"
#include "core/base/limits.h"
#include "core/base/map.h"
#include "core/base/reason.h"
#include "core/base/slice.h"
#include "core/base/status.h"
#include "core/http/url.h"

enum policy_mode { POLICY_ENFORCE, POLICY_OBSERVE };

enum rule_action { RULE_ALLOW, RULE_DENY, RULE_TUNNEL };

/* ---- secrets: what is known of them. Their values are not here (proxy/vault.h). */

enum secret_source { SECRET_ENV, SECRET_FILE, SECRET_KEYVAULT };

/* What becomes of a value on its way out. */
enum secret_use {
	SECRET_AS_IS,       /* it replaces its placeholder */
	SECRET_SIGV4,       /* it is the key that a request is signed with anew, as AWS has it */
	SECRET_HMAC,        /* it is the key of a field with an HMAC-SHA256 */
	SECRET_CREDENTIALS, /* OAuth 2 client secret: a token got with it replaces the placeholder */
	SECRET_GOOGLE_JWT   /* a service account's key file: likewise */
};

enum hmac_part { HMAC_METHOD, HMAC_PATH, HMAC_QUERY, HMAC_HOST, HMAC_BODY, HMAC_HEADER };

struct policy_hmac {
	struct slice header, prefix; /* the field that gets it, and what its value begins with ("sha256=") */
	bool base64;                 /* else hex, lower case */
	struct slice joiner;         /* between the parts */
	struct {
		enum hmac_part what;
		struct slice name; /* of a HMAC_HEADER, lower case */
	} parts[8];
	size_t n_parts;
};

struct policy_oauth2 {
	struct target token_url;      /* https; some allow rule must cover it */
	struct slice client_id;       /* SECRET_CREDENTIALS */
	struct slice scope, audience; /* may be empty */
	bool basic;                   /* client id and secret go into Authorization, else into the form */
};

/* What every random placeholder begins with (core/proc/placeholder.h). */
#define PLACEHOLDER_PREFIX "cage-ph-"

struct policy_secret {
	struct slice id;
	enum secret_source from;
	struct slice source;        /* name of the variable, path of the file, or canonical URL; a NUL follows */
	const struct target *vault; /* where `from` names a key vault; else NULL */
	struct slice placeholder;   /* empty: random, per sandbox (core/proc/placeholder.h) */
	struct slice *headers;      /* slots; names in lower case */
	size_t n_headers;
	struct slice *queries; /* names as they are written */
	size_t n_queries;
	bool in_path, in_body;
	bool require; /* each of its slots must hold the placeholder */
	enum secret_use use;
	struct slice key_id;               /* SECRET_SIGV4; empty: the client's */
	const struct policy_hmac *hmac;    /* SECRET_HMAC */
	const struct policy_oauth2 *oauth; /* SECRET_CREDENTIALS, SECRET_GOOGLE_JWT */
	uint64_t keep_us;                  /* how long an old value is still taken out of responses */
	unsigned slot;                     /* of the vault; set by the loader's caller */
};

/* So many in a period. A period of 0: no limit. */
struct policy_rate {
	uint64_t count, period_us;
};

struct policy_rule {
	struct slice id;
	enum rule_action action;
	enum policy_mode mode; /* the rule's own, else the policy's */
	struct slice *hosts;   /* canonical; wildcards as "*.x" */
	size_t n_hosts;
	uint16_t *ports; /* n_ports 0: any (deny rules only) */
	size_t n_ports;
	struct slice *methods; /* n_methods 0: any */
	size_t n_methods;
	struct slice *paths;       /* canonical patterns; n_paths 0: any */
	struct slice *loose_paths; /* the same patterns in their loose reading */
	size_t n_paths;
	struct addr_range *addresses; /* n_addresses 0: public addresses only */
	size_t n_addresses;
	int64_t expires; /* seconds since 1970; 0: never */
	uint64_t limit_body, limit_hold;
	struct policy_rate limit_rate;        /* requests */
	uint64_t limit_burst;                 /* requests at once, with limit_rate; 0: none ever */
	struct policy_rate limit_out;         /* bytes */
	const struct policy_secret **secrets; /* that may be put in here, and nowhere else */
	size_t n_secrets;
	bool near_secrets; /* some rule of the same host has secrets */
	bool plaintext;    /* they may also go over http */
};

/* A name that is dialled at a given address. */
struct policy_pin {
	struct slice host;
	struct addr addr;
	uint16_t port; /* 0: the port that was asked for */
};

/* Where to ask for names. No entry means: the system's resolvers. */
struct policy_resolver {
	struct addr addr;
	uint16_t port;
	struct slice name; /* of its certificate: it is asked over TLS; empty: as it is, over UDP and TCP */
};

/* The name of a page of the proxy itself: never looked up and never dialled, whatever the rules say. */
#define POLICY_PAGE_HOST "cage.internal"

/* ---- what cage-dns does beyond the rules ---- */

/* What a name that may not be asked for is answered with. */
enum dns_denied { DNS_SINKHOLE, DNS_NXDOMAIN, DNS_REFUSED };

enum dns_mode {
	DNS_RESOLVE,  /* names get the addresses that they have */
	DNS_SYNTHETIC /* each gets one of the pool, and nobody is asked */
};

/* Where the alias (CNAME) of an allowed name may lead. */
enum dns_aliases {
	DNS_ALIASES_ALLOWED, /* to names that are allowed themselves */
	DNS_ALIASES_ANY      /* anywhere but to what a rule denies: names behind a CDN */
};

struct policy_dns {
	enum dns_denied denied;
	enum dns_aliases aliases;
	struct addr sinkhole[2]; /* with DNS_SINKHOLE; one of a family at most */
	size_t n_sinkhole;
	uint16_t types[LIMIT_DNS_TYPES]; /* answered beside A and AAAA */
	size_t n_types;
	enum dns_mode mode;
	struct addr_range pool;                /* with DNS_SYNTHETIC; IPv4 */
	uint32_t ttl_min, ttl_max, ttl_denied; /* seconds */
	struct policy_rate tunnel_rate;        /* queries under one domain that a wildcard lets out, ... */
	struct policy_rate tunnel_bytes;       /* ... and bytes of names in them */
};

/* Certificates to trust upstream, on top of each other. */
struct policy_trust {
	bool system;
	struct slice *pems; /* contents of the files */
	size_t n_pems;
};

/* Images that a container may be made of; who asks is in orchestrator/image. */
struct policy_image {
	struct slice registry;   /* with its port, if it has one; compared as it is written */
	struct slice repository; /* a pattern as those of paths are, with a slash before it */
	struct slice digest;     /* "sha256:..."; empty: any */
	struct slice key;        /* DER of the public key that has to have signed it; empty: nobody has to */
};

/* A file that it was read from: the policy itself, what it includes, certificates. */
struct policy_file {
	struct slice path;        /* as it was opened, with a NUL behind it */
	struct policy_file *next; /* in the order in which they were read */
};

struct policy {
	struct slice name;
	struct policy_file *files;
	char sha[65]; /* hex SHA-256 of the file and its includes, in order */
	uint64_t gen; /* set by the loader's caller */
	enum policy_mode mode;
	struct policy_rule *rules;
	size_t n_rules;
	struct map exact;    /* host -> struct host_rules */
	struct map wildcard; /* "x" of "*.x" -> struct host_rules */
	struct map pins;     /* host -> struct policy_pin */
	struct policy_pin *pin_list;
	size_t n_pins;
	struct policy_resolver *resolvers;
	size_t n_resolvers;
	bool system_resolvers;
	bool bound; /* the proxy dials only what cage-dns has answered */
	struct policy_dns dns;
	struct policy_trust trust;
	struct policy_secret *secrets;
	size_t n_secrets;            /* at most LIMIT_SECRETS */
	struct policy_image *images; /* none: no image may be run */
	size_t n_images;
	const void *inspectors; /* what the reader of that section has made of it; NULL: there was no reader */
	uint16_t *listed_ports; /* every port that some rule lists, sorted; 443 and 80 only when listed */
	size_t n_listed_ports;
};

/* ---- loading ---- */

struct policy_error {
	char file[256];
	unsigned line, column; /* from 1; 0 when the file as a whole is meant */
	char text[512];        /* "rules[2].ports: expected a port from 1 to 65535, got \"99999\"" */
};

struct policy_errors {
	struct policy_error list[LIMIT_POLICY_ERRORS];
	size_t n;
	size_t more; /* found beyond the list */
};

struct loader;
struct node;

/* Reads the section `inspectors` (NULL: the policy has none), once the rules are known. NULL only with an error. */
typedef const void *policy_inspectors_reader(struct loader *l, const struct node *section);

/* The value of a secret's source, borrowed until the next call. ptr NULL: there is none, and *why says so in words that
 * follow "it": "is not set". */
typedef struct slice policy_value_reader(void *arg, const struct policy_secret *s, const char **why);

/* What the loader's caller knows to read. */
#define POLICY_VAULT_VARIABLE "CAGE_VAULT_%zu" /* of the secret of that place among all of the policy */

struct policy_readers {
	policy_inspectors_reader *inspectors; /* NULL: nobody inspects, and the section is not looked at */
	policy_value_reader *value;           /* NULL: the values of secrets are not looked at */
	void *arg;                            /* for value */
	bool refuses_tls_resolvers;           /* where it would have to ask one: it can't */
	bool has_vault_variables; /* what is in a key vault was read by somebody else: SECRET_ENV, POLICY_VAULT_VARIABLE */
};

/* Reads, checks, compiles and runs the policy's own tests. NULL with at least one error in errs when anything is wrong.
 * now: seconds since 1970, for `expires` in the tests. readers: NULL for none. The policy lives in the arena. */
struct policy *policy_load(const char *path, struct arena *arena, int64_t now, const struct policy_readers *readers,
			   struct policy_errors *errs);

/* Would loading path again give that policy, which was loaded from there? Never said of one that was read from other files too (what it
 * includes, certificates, keys) or whose secrets come from anywhere but variables: these may have changed behind it. */
bool policy_is_as_in(const struct policy *p, const char *path);

/* What is wrong with a value of that secret, in words that follow "it", never with a byte of it; NULL: nothing. */
const char *policy_value_fault(const struct policy *p, const struct policy_secret *s, struct slice value);

/* Prints "file:line:column: text" for each error. */
void policy_errors_print(const struct policy_errors *errs, int fd);

/* ---- matching ---- */

/* How a rule fits a host. */
struct host_match {
	bool is_listed; /* it spells it out: no wildcard was needed */
	struct slice
		wildcard; /* what the widest of its wildcards that fit stands before, "x" of "*.x"; empty: none fits */
};

/* What the policy says. With reason REASON_NONE the traffic is allowed by `rule`. Otherwise it is not: `rule` is then
 * the deny rule (REASON_RULE_DENIED) or NULL, and `observe` says that the refusal is only written down. `applies` is
 * the allow or tunnel rule whose addresses and limits hold if the traffic goes: `rule` when it is allowed, the one
 * that an observed deny stands before, NULL when there is none. */
struct policy_verdict {
	enum reason reason;
	const struct policy_rule *rule;
	const struct policy_rule *applies;
	bool observe;
	struct host_match match; /* of `applies`; policy_match_name() alone says it */
};

/* May some request to that host and port be allowed at all? A tunnel rule is returned as the rule.
 * A rule whose methods or paths are listed counts as possible; a deny rule counts only when it lists neither, except
 * against a tunnel: nobody will see methods or paths there, so any deny rule of that host and port stops it. */
struct policy_verdict policy_match_connect(const struct policy *p, const struct host *host, uint16_t port, int64_t now);

/* The decision on one request. method as received: allow rules compare it as it is, deny rules without case. A host and port that belong to a tunnel
 * rule give REASON_TUNNEL_ONLY: nobody looks into a tunnel, so nothing is served there either. */
struct policy_verdict policy_match_request(const struct policy *p, const struct target *t, struct slice method,
					   int64_t now);

/* Could a connection to that name be allowed, on any port? Then it may be asked for. Deny rules count as for connections;
 * a name stays allowed while one port of one live rule is left. Of several rules the most specific is told. */
struct policy_verdict policy_match_name(const struct policy *p, const struct host *host, int64_t now);

/* The address that a denied name is answered with; NULL: none of that family. */
const struct addr *policy_sinkhole(const struct policy_dns *dns, enum addr_family family);

/* Does the policy list that query type beside A and AAAA? */
bool policy_lists_type(const struct policy_dns *dns, uint16_t type);

/* "ADDR", "ADDR:PORT", "[ADDR]:PORT" or "tls://ADDR[:PORT]#NAME"; the name is copied to the arena. */
bool policy_resolver_parse(struct slice text, struct arena *a, struct policy_resolver *out);

/* How many of them are asked over TLS. */
size_t policy_count_tls(const struct policy_resolver *list, size_t n);

/* Does the proxy ask resolvers? Not where it goes only by what cage-dns has answered. */
static inline bool policy_asks_resolvers(const struct policy *p)
{
	return !p->bound || p->dns.mode == DNS_SYNTHETIC;
}

const struct policy_pin *policy_pin_for(const struct policy *p, const struct host *host);

/* Does some rule list this port? */
bool policy_lists_port(const struct policy *p, uint16_t port);

/* One star stays within a segment, two stars stand for any number of segments, and a pattern that ends in a slash and
 * two stars matches its own prefix too. Linear in the path for each pattern. */
bool policy_path_matches(struct slice pattern, struct slice path);

#endif
