/* The server's side of SOCKS5 (RFC 1928) with user and password (RFC 1929), as far as CONNECT. No sockets: the caller
 * gives what has arrived and is told what to answer.
 *
 *	socks5_read -> SOCKS5_ANSWER (the method) [-> SOCKS5_IDENTITY, socks5_judge] -> SOCKS5_CONNECT, socks5_reply
 *
 * Each message is taken when it is whole, and the longest has SOCKS5_MESSAGE bytes, so no more than that is ever waited
 * for. What is wrong is said at the first byte that shows it, so where the bytes are cut makes no difference. */
#ifndef CAGE_HTTP_SOCKS5_H
#define CAGE_HTTP_SOCKS5_H

#include "core/base/addr.h"
#include "core/base/reason.h"
#include "core/base/slice.h"

#define SOCKS5_MESSAGE 513 /* bytes of the longest message: user and password */

enum socks5_state {
	SOCKS5_GREETING,
	SOCKS5_PASSWORD,
	SOCKS5_JUDGED, /* the caller is to say what it thinks of the password */
	SOCKS5_REQUEST,
	SOCKS5_OVER /* for good or ill */
};

/* To start: {.needs_identity = ...}, all else zero. */
struct socks5 {
	bool needs_identity; /* user and password, or nothing; else no method at all is preferred */
	enum socks5_state state;
	char address[ADDR_TEXT + 2]; /* where an address is written for the caller */
};

enum socks5_event {
	SOCKS5_MORE,     /* nothing is whole yet */
	SOCKS5_ANSWER,   /* send the answer and go on reading */
	SOCKS5_IDENTITY, /* there are user and password: socks5_judge() */
	SOCKS5_CONNECT,  /* there is a target: send socks5_reply() once it is known what becomes of it */
	SOCKS5_REFUSE    /* send the answer, which can be empty, and close */
};

/* What one call of socks5_read() gave. All slices but the answer point into the input or into struct socks5. */
struct socks5_step {
	size_t used;                 /* bytes of the input that are done with */
	struct slice answer;         /* with SOCKS5_ANSWER and SOCKS5_REFUSE */
	struct slice user, password; /* with SOCKS5_IDENTITY: up to 255 bytes each, any bytes */
	/* With SOCKS5_CONNECT. A name has 1 to 255 bytes exactly as they came, and an address is canonical, IPv6 in
	 * brackets: so both are for host_parse(), as the host of a CONNECT is. */
	struct slice host;
	bool host_is_printable; /* no byte outside 0x21..0x7e (THREATS T01) */
	uint16_t port;          /* never 0 */
	/* With SOCKS5_REFUSE. */
	enum reason reason; /* AUTH_REQUIRED, PROTOCOL_UNKNOWN, TARGET_MALFORMED */
	const char *what;   /* one plain sentence; static; says nothing of the peer's bytes */
};

/* input: all that has arrived and was not used yet. What follows the request stays unused: it belongs to what is spoken
 * inside. While socks5_judge() is waited for, and after the end, nothing is used and the event is SOCKS5_MORE. */
enum socks5_event socks5_read(struct socks5 *s, struct slice input, struct socks5_step *out);

/* The outcome for the user and password that were read last: what to answer. When they are not good, close then. */
struct slice socks5_judge(struct socks5 *s, bool are_good);

enum socks5_code {
	SOCKS5_REPLY_OK = 0,
	SOCKS5_REPLY_FAILED = 1,
	SOCKS5_REPLY_NOT_ALLOWED = 2,
	SOCKS5_REPLY_UNREACHABLE = 4,
	SOCKS5_REPLY_COMMAND = 7, /* not supported */
	SOCKS5_REPLY_ADDRESS = 8  /* its type is not supported */
};

/* The reply to a request, with 0.0.0.0:0 as the bound address; static. */
struct slice socks5_reply(enum socks5_code code);

#endif
