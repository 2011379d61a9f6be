/* One canonical form of names and URLs, used for match, dial, Host, SNI, send and log (THREATS T01, T03-T07, T20). */
#ifndef CAGE_HTTP_URL_H
#define CAGE_HTTP_URL_H

#include "core/base/addr.h"
#include "core/base/arena.h"
#include "core/base/slice.h"
#include "core/base/status.h"

enum host_kind { HOST_NAME, HOST_ADDRESS };

struct host {
	enum host_kind kind;
	struct slice text; /* canonical: lower case, no root dot; IPv6 per RFC 5952 without brackets */
	struct addr addr;  /* with HOST_ADDRESS */
};

enum scheme { SCHEME_HTTP, SCHEME_HTTPS };

/* Where a request goes and what for. */
struct target {
	enum scheme scheme;
	struct host host;
	uint16_t port;
	struct slice path;  /* canonical, starts with '/'; "*" for OPTIONS * */
	struct slice loose; /* what a careless origin might make of path: fully decoded, `;x` cut off, as well as what
			     * follows a decoded `?` or `#`, `\` as `/`, `//` collapsed. Deny rules look at both, allow
			     * rules need both. A path that hides a dot segment or more readings than these is refused. */
	struct slice query; /* with its '?', byte for byte; empty when there is none */
};

/* A host as it stands in a URL, a Host field, CONNECT or SNI: name, dotted IPv4 or [IPv6].
 * Rejects everything that some other reader could take for another host: bytes outside letters, digits,
 * '-', '_' and '.'; empty and overlong labels; two root dots; IPv4 in odd spellings (decimal, octal, hex, short);
 * zone ids. *why is a static sentence. The canonical text is in the arena. */
enum cage_status host_parse(struct slice text, struct arena *arena, struct host *out, const char **why) MUST_CHECK;

/* "host", "host:port", "[v6]:port". An absent or empty port gives default_port; 0 there means: a port must be present.
 */
enum cage_status authority_parse(struct slice text, uint16_t default_port, struct arena *arena, struct host *host,
				 uint16_t *port, const char **why) MUST_CHECK;

/* Canonical path and loose form. path_and_query starts with '/' (or is "*"). Percent escapes: unreserved decoded,
 * others in upper case; dot segments resolved; a path that climbs above the root is refused, as are '#', raw '\' in
 * the path, blanks, controls, bytes above 0x7e, broken escapes, %00. */
enum cage_status path_parse(struct slice path_and_query, struct arena *arena, struct target *out,
			    const char **why) MUST_CHECK;

/* "http://host[:port]/path?query" to all parts of *out; userinfo and fragments are refused. */
enum cage_status url_parse(struct slice url, struct arena *arena, struct target *out, const char **why) MUST_CHECK;

bool host_eq(const struct host *a, const struct host *b);

/* The value for Host: brackets around IPv6, port left out when it is the scheme's own. In the arena; ptr NULL without
 * memory. */
struct slice host_header(const struct target *t, struct arena *arena);

/* Path and query as sent upstream. */
struct slice target_send(const struct target *t, struct arena *arena);

/* Path and query as logged: values of the query left out ("/a?x=&y="). */
struct slice target_logged(const struct target *t, struct arena *arena);

static inline struct slice scheme_text(enum scheme s)
{
	return s == SCHEME_HTTPS ? SLICE("https") : SLICE("http");
}

#endif
