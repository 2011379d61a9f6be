/* HTTP/2 with a client. Each of its streams becomes an inner stream on which one request and its response are plain
 * HTTP/1.1, so that requests of both versions go through the same code. Start reading here.
 *
 *	h2_server.c		the connection: bytes in and out, its bounds and its end
 *	h2_server_frames.c	nghttp2's callbacks: which frame concerns which stream
 *	h2_server_stream.c	one stream, from its first frame to its last
 *	h2_server_request.c	fields and DATA of a stream -> HTTP/1.1 on its inner stream
 *	h2_server_response.c	HTTP/1.1 from the inner stream -> HEADERS and DATA
 *
 * What a client sends is acknowledged when the inner stream has taken it, and what an inner stream has is taken when the
 * client's windows have room: one that is slow stalls nobody else. */
#ifndef CAGE_PROXY_H2_SERVER_H
#define CAGE_PROXY_H2_SERVER_H

#include "core/base/reason.h"
#include "core/net/stream.h"

struct h2_server;

/* Called from the loop only. Each may free the server. */
struct h2_server_cb {
	/* A request: inner is the callee's from now on and gives HTTP/1.1 text, beginning with the head. It is one
	 * exchange; it ends when the response is through, and breaks: CAGE_TRUNCATED when the client gives up, CAGE_EPROTO
	 * when its body is malformed, which the client sees as a stream error. */
	void (*on_request)(struct h2_server *, struct stream *inner, void *arg);
	/* A stream that was refused before it became a request; the client sees a stream error. */
	void (*on_malformed)(struct h2_server *, enum reason reason, void *arg);
	/* The connection is over, and its inner streams are reset. REASON_NONE: in good order. To be freed. */
	void (*on_end)(struct h2_server *, enum reason reason, void *arg);
};

/* down: TLS with ALPN h2, the handshake done; taken over. NULL without memory: down is still the caller's. */
struct h2_server *h2_server_new(struct loop *l, struct stream *down, const struct h2_server_cb *cb, void *arg);

/* No request more (GOAWAY); on_end follows when those under way are through. */
void h2_server_drain(struct h2_server *h);

/* The same a while (LIMIT_H2_PARTING_MS) after the answers to those under way, since there are clients that read nothing
 * more when GOAWAY has come. Requests that come meanwhile are taken. */
void h2_server_drain_after(struct h2_server *h);

/* Requests under way. */
size_t h2_server_streams(const struct h2_server *h);

/* At once: what is open is reset. There are no callbacks any more. */
void h2_server_free(struct h2_server **h);

#endif
