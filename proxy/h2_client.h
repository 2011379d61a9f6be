/* HTTP/2 with an origin. Each request gets an inner stream of its own, on which it and its response are plain HTTP/1.1:
 * to a transaction it is a connection that serves one request. Start reading here.
 *
 *	h2_client.c		the connection: bytes in and out, its bounds and its end
 *	h2_client_frames.c	nghttp2's callbacks: which frame concerns which request
 *	h2_call.c		one request and its response: its life, and what arrives
 *	h2_call_request.c	HTTP/1.1 from the inner stream -> HEADERS and DATA
 *
 * Windows work as in h2_server.h: DATA is acknowledged when the inner stream has taken it, and the request is read from
 * the inner stream when the origin has room for it. All that passes is overwritten, since secrets may be in it. */
#ifndef CAGE_PROXY_H2_CLIENT_H
#define CAGE_PROXY_H2_CLIENT_H

#include "core/net/stream.h"

struct h2_client;

struct h2_client_cb {
	/* The connection is over: its peer has left, it is broken, or nobody has used it for LIMIT_POOL_IDLE_MS. No
	 * inner stream is left. From the loop only; to be freed, here or later. */
	void (*on_end)(struct h2_client *, void *arg);
};

/* up: TLS with ALPN h2, the handshake done; taken over. NULL without memory: up is still the caller's. */
struct h2_client *h2_client_new(struct loop *l, struct stream *up, const struct h2_client_cb *cb, void *arg);

/* May another request be opened? Not beyond the bounds of both sides, after a GOAWAY, or while the origin is silent for
 * so long that it may be gone. */
bool h2_client_has_room(const struct h2_client *h);

/* Requests under way. */
size_t h2_client_calls(const struct h2_client *h);

/* An inner stream: the caller's, who sets its owner, writes one request in origin-form and reads its response. NULL
 * without room or memory. It ends
 *	cleanly, behind the response;
 *	cleanly without a byte, when the origin has surely not looked at the request: it was refused, or not sent;
 *	broken (CAGE_TRUNCATED), when the origin has left, or what it says is cut short;
 *	broken (CAGE_EPROTO), when what it says is malformed.
 * To end, close or reset it before the response is whole is to give the request up (RST_STREAM CANCEL). */
struct stream *h2_client_open(struct h2_client *h);

/* At once. What is open ends as above. There are no callbacks any more. */
void h2_client_free(struct h2_client **h);

#endif
