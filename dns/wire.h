/* DNS messages (RFC 1035, 6891, 8914): a strict reader of queries, a bounded reader of responses, and a writer of answers.
 * Nothing here keeps memory: what is read borrows from the packet, what is written goes into a buffer of the caller.
 *
 * A query is read by dns_query_parse(), and whatever that says but DNS_PARSE_DROP is answered with a dns_writer. What an
 * upstream says is read by dns_response_parse() and dns_response_next(), and is never passed on as it came. */
#ifndef CAGE_DNS_WIRE_H
#define CAGE_DNS_WIRE_H

#include "core/base/limits.h"
#include "core/base/slice.h"

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_NS = 2,
	DNS_TYPE_CNAME = 5,
	DNS_TYPE_SOA = 6,
	DNS_TYPE_NULL = 10,
	DNS_TYPE_PTR = 12,
	DNS_TYPE_MX = 15,
	DNS_TYPE_TXT = 16,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_SRV = 33,
	DNS_TYPE_NAPTR = 35,
	DNS_TYPE_OPT = 41,
	DNS_TYPE_SVCB = 64,
	DNS_TYPE_HTTPS = 65,
	DNS_TYPE_IXFR = 251,
	DNS_TYPE_AXFR = 252,
	DNS_TYPE_ANY = 255
};

enum dns_class { DNS_CLASS_IN = 1, DNS_CLASS_CHAOS = 3 };

enum dns_rcode {
	DNS_RCODE_NOERROR = 0,
	DNS_RCODE_FORMERR = 1,
	DNS_RCODE_SERVFAIL = 2,
	DNS_RCODE_NXDOMAIN = 3,
	DNS_RCODE_NOTIMP = 4,
	DNS_RCODE_REFUSED = 5,
	DNS_RCODE_BADVERS = 16 /* only with EDNS */
};

/* Why there is no other answer (RFC 8914). */
enum dns_explain {
	DNS_EXPLAIN_OTHER = 0,
	DNS_EXPLAIN_BLOCKED = 15,
	DNS_EXPLAIN_FILTERED = 17,
	DNS_EXPLAIN_NO_REACHABLE = 22,
	DNS_EXPLAIN_NETWORK = 23
};

#define DNS_HEADER 12
#define DNS_NAME_WIRE 255 /* bytes of a name on the wire, with its root label */
#define DNS_TYPE_TEXT 10  /* "TYPE65535" and a spare byte */

/* In text: lower case, labels with dots between, none at the end; the root is empty. */
struct dns_name {
	uint8_t len;
	bool is_plain; /* one label or more of letters, digits, '-' and '_' only. Else the text is for the log alone: what
			  can't be shown, and a dot inside a label, is '?' in it */
	char text[LIMIT_HOST + 1];
};

struct dns_question {
	struct slice raw_name; /* wire form as received, never compressed; empty when there was none to read */
	struct dns_name name;
	uint16_t type, class;
};

struct dns_query {
	size_t size; /* bytes of the packet */
	uint16_t id;
	uint8_t opcode;
	bool rd, cd, has_edns, wants_dnssec;
	uint16_t udp_size; /* what the client takes over UDP: 512 without EDNS, else 512 to LIMIT_DNS_UDP */
	struct dns_question q;
};

enum dns_parse {
	DNS_PARSE_DROP,    /* no answer is right: not a query, or no header */
	DNS_PARSE_FORMERR, /* this and what follows: id, opcode and rd are set, for an answer that says so */
	DNS_PARSE_NOTIMP,
	DNS_PARSE_BADVERS, /* the question is set as well */
	DNS_PARSE_OK
};

/* One question, no records but one OPT, nothing behind: everything else is refused. EDNS options are stepped over. */
enum dns_parse dns_query_parse(struct slice packet, struct dns_query *out);

/* The rcode of an answer to what is not DNS_PARSE_OK. */
enum dns_rcode dns_parse_rcode(enum dns_parse parse);

struct dns_rr {
	struct dns_name owner;
	uint16_t type, class;
	uint32_t ttl;           /* a value with the top bit set is 0 (RFC 2181, 8) */
	struct slice rdata;     /* as it came: names in it may be compressed */
	struct dns_name target; /* of a CNAME */
};

/* Read one record after the other; the fields below the line are the reader's place. */
struct dns_response {
	uint16_t id;
	uint8_t rcode;
	bool is_truncated;
	struct dns_question q;

	struct slice packet;
	size_t at;
	uint16_t answers;   /* still to be read */
	uint16_t authority; /* records behind them */
};

enum dns_next {
	DNS_NEXT_RECORD,
	DNS_NEXT_END,
	DNS_NEXT_MALFORMED /* and so for ever */
};

/* False when it is not a response to one question, or has more than LIMIT_DNS_RECORDS answers. The records are read by
 * dns_response_next() only. */
bool dns_response_parse(struct slice packet, struct dns_response *out);

/* The next record of the answer section. */
enum dns_next dns_response_next(struct dns_response *r, struct dns_rr *out);

/* After DNS_NEXT_END: how long "there is none" may be believed, from the SOA of the authority section (RFC 2308). */
bool dns_response_negative_ttl(const struct dns_response *r, uint32_t *ttl);

/* The names of a record's data of types NS, CNAME, PTR, MX, SRV, NAPTR and SOA written out in full, other types copied: what
 * dns_write_raw() takes. False when it is malformed or does not fit. */
bool dns_rdata_expand(const struct dns_response *r, const struct dns_rr *rr, char *buf, size_t cap, struct slice *out);

/* An answer under way. Records that do not fit are left out, and the answer is marked as truncated. */
struct dns_writer {
	const struct dns_query *query;
	char *buf;
	size_t cap; /* for the records; room for the OPT is kept behind */
	size_t len;
	enum dns_rcode rcode;
	uint16_t answers;
	bool is_truncated;
	bool is_verified; /* the sender is where the packet says: an explanation may make the answer longer than the query */
	uint16_t target_at;     /* where the name of the last CNAME's target was written; 0: nowhere */
	struct dns_name target; /* that name */
	enum dns_explain explain;
	struct slice explanation;
	bool has_explanation;
};

/* cap is what may be sent: of UDP query->udp_size, of TCP as much as the buffer has; at least DNS_ANSWER_MIN. The query
 * has to stay until dns_write_end(). */
#define DNS_ANSWER_MIN 512
void dns_write_begin(struct dns_writer *w, char *buf, size_t cap, const struct dns_query *query);

void dns_write_rcode(struct dns_writer *w, enum dns_rcode rcode);
void dns_write_a(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const uint8_t addr[4]);
void dns_write_aaaa(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const uint8_t addr[16]);
void dns_write_cname(struct dns_writer *w, const struct dns_name *owner, uint32_t ttl, const struct dns_name *target);
void dns_write_raw(struct dns_writer *w, const struct dns_name *owner, uint16_t type, uint32_t ttl, struct slice rdata);

/* An extended DNS error for a client that has EDNS; the text (a reason code) has to stay until dns_write_end(). To a
 * sender that is not verified it is written only as far as the answer does not get longer than the query. */
void dns_write_explain(struct dns_writer *w, enum dns_explain code, struct slice text, bool is_verified);

struct slice dns_write_end(struct dns_writer *w);

/* "AAAA", or "TYPE64" of one without a name here. */
struct slice dns_type_text(uint16_t type, char buf[DNS_TYPE_TEXT]);

/* Text to name; false when a label or the whole is too long or empty, or not plain. */
bool dns_name_set(struct dns_name *name, struct slice text);
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
struct slice dns_name_text(const struct dns_name *name);

/* For the readers and the writer. Reads the name at *at and moves *at behind it; pointers go backwards only. */
bool dns_name_read(struct slice packet, size_t *at, struct dns_name *out);

/* Wire form, uncompressed: the bytes written, or 0 when cap is too small. Only of plain names and the root. */
size_t dns_name_write(const struct dns_name *name, char *buf, size_t cap);

#endif
