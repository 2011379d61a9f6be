/* IP addresses as values: parsing of canonical literals, ranges, and which ranges are special (THREATS T07, T08).
 * No sockets in here: the policy needs ranges as much as the dialler does. */
#ifndef CAGE_BASE_ADDR_H
#define CAGE_BASE_ADDR_H

#include <sys/socket.h>

#include "core/base/slice.h"
#include "core/base/status.h"

enum addr_family { ADDR_V4 = 4, ADDR_V6 = 6 };

struct addr {
	enum addr_family family;
	unsigned char bytes[16]; /* network order; v4 in the first four, the rest zero */
};

/* A CIDR range. */
struct addr_range {
	struct addr base; /* host bits are zero */
	unsigned prefix;  /* bits */
};

enum addr_class {
	ADDR_PUBLIC,
	ADDR_SPECIAL, /* loopback, private, link-local, ...: only through a rule's `addresses` */
	ADDR_METADATA /* cloud metadata services: never, and no rule can list them */
};

#define ADDR_TEXT 46 /* longest canonical text, with its NUL */

/* Canonical spellings only: dotted decimal without leading zeros, or RFC 4291 IPv6 without zone and brackets. */
bool addr_parse(struct slice text, struct addr *out);

/* "1.2.3.4" or RFC 5952; returns the slice inside out. */
struct slice addr_format(const struct addr *a, char out[ADDR_TEXT]);

bool addr_eq(const struct addr *a, const struct addr *b);

/* "10.0.0.0/8", "fd00::/8", or a single address; on failure *why says what is wrong (host bits set, prefix, ...). */
bool addr_range_parse(struct slice text, struct addr_range *out, const char **why);

bool addr_range_contains(const struct addr_range *r, const struct addr *a);

/* Looks through IPv4-mapped, -compatible, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), 6to4 and Teredo to the IPv4
 * address inside: the worst class of any reading wins. Of an address that embeds another, none is ADDR_PUBLIC
 * except NAT64 of a public one. */
enum addr_class addr_classify(const struct addr *a);

/* Does the range contain any metadata address? */
bool addr_range_has_metadata(const struct addr_range *r);

socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *out);
bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *out, uint16_t *port);

/* "127.0.0.1:8080" or "[::1]:8080". */
bool addr_parse_with_port(struct slice text, struct addr *out, uint16_t *port);

/* True when the labels of a host name spell an address that is not public: 169-254-169-254.x, 10.0.0.1.x,
 * 0a000001.x, 2130706433.x, or IPv6 with dashes; embedded anywhere in the name. (THREATS T07) */
bool addr_spelled_in_name(struct slice name);

/* 127.0.0.0/8 and ::1. */
bool addr_is_loopback(const struct addr *a);

#endif
