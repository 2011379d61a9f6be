/* What is said to a client that asked to be connected, in the way it asked: HTTP to a CONNECT, a reply of SOCKS5, and
 * nothing on a captured connection, whose client does not know that it asked. */
#include "core/http/socks5.h"
#include "proxy/conn.h"

void conn_answer_connected(struct conn *c)
{
	switch (c->entrance) {
	case ENTRANCE_PROXY:
		stream_write(c->down, SLICE("HTTP/1.1 200 Connection established\r\n\r\n"));
		break;
	case ENTRANCE_SOCKS:
		stream_write(c->down, socks5_reply(SOCKS5_REPLY_OK));
		break;
	case ENTRANCE_CAPTURED:
	case ENTRANCE_TOOLS:
		break;
	}
}

static enum socks5_code socks_code(enum reason reason)
{
	if (refusal_is_upstream_failure(reason))
		return SOCKS5_REPLY_UNREACHABLE;
	return refusal_status(reason) == 503 ? SOCKS5_REPLY_FAILED : SOCKS5_REPLY_NOT_ALLOWED;
}

void conn_answer_refused(struct conn *c, const struct refusal *r)
{
	switch (c->entrance) {
	case ENTRANCE_PROXY:
		conn_write_refusal(c, r, true, false);
		break;
	case ENTRANCE_SOCKS:
		stream_write(c->down, socks5_reply(socks_code(r->reason)));
		break;
	case ENTRANCE_CAPTURED:
		if (!conn_has_hello(c)) /* else only TLS would be understood, and it is not ours to speak */
			conn_write_refusal(c, r, true, false);
		break;
	case ENTRANCE_TOOLS:
		break;
	}
}
