/* Between the field lists of HTTP/2 and the heads of HTTP/1.1, in both directions. The transactions know only HTTP/1.1
 * text, so that every request goes through the same gate whatever its version. Start reading here.
 *
 *	h2 -> h1	fields are collected one by one with h2_fields_add(), which refuses what RFC 9113, 8.2 and 8.3
 *			forbid, then written with h2_write_request() or h2_write_response(); struct h2_body counts the
 *			DATA that follow and writes them, and the trailers, as that head has promised.
 *	h1 -> h2	h2_nv_request(), h2_nv_response() and h2_nv_trailers() make the list for nghttp2.
 *
 * Nothing is repaired: a list that could be read in two ways is malformed. */
#ifndef CAGE_PROXY_H2_TEXT_H
#define CAGE_PROXY_H2_TEXT_H

#include <nghttp2/nghttp2.h>

#include "core/base/arena.h"
#include "core/base/text.h"
#include "core/http/message.h"
#include "core/net/stream.h"

/* ---- h2 fields in ---- */

enum h2_kind { H2_REQUEST, H2_RESPONSE, H2_TRAILERS };

/* One list as it arrives. A pseudo field that has not come has ptr NULL. */
struct h2_fields {
	enum h2_kind kind;
	struct arena *arena;
	struct slice method, scheme, authority, path; /* H2_REQUEST */
	struct slice protocol;                        /* the same: of an extended CONNECT, always "websocket" */
	struct slice status;                          /* H2_RESPONSE */
	struct slice host;                            /* the one Host field; ptr NULL: none */
	bool has_content_length;
	uint64_t content_length;
	struct field *fields; /* all others, in their order */
	size_t n_fields, room;
	size_t n_pseudo, n_all;
	size_t bytes; /* as they count in a head of HTTP/1.1 */
};

/* The arena must live as long as the list: names and values are copied into it. */
void h2_fields_init(struct h2_fields *f, enum h2_kind kind, struct arena *arena);

/* The next field. CAGE_EPROTO: the list is malformed. CAGE_ELIMIT: beyond LIMIT_HEAD (trailers: LIMIT_TRAILERS) or
 * LIMIT_HEADERS. CAGE_ENOMEM. */
enum cage_status h2_fields_add(struct h2_fields *f, struct slice name, struct slice value) MUST_CHECK;

/* ---- h1 text out ---- */

/* What follows a head that was written here.
 *
 *	BODY_NONE	nothing; DATA with bytes in it are malformed
 *	BODY_LENGTH	as many bytes as `left` says, and trailers behind them (h1_body_init_inner())
 *	BODY_CHUNKED	chunks
 *	BODY_CLOSE	requests only: CONNECT and websocket, whose bytes go on as they are */
struct h2_body {
	enum body_framing framing;
	uint64_t left;        /* with BODY_LENGTH */
	bool carries_secrets; /* a server's: what it was sent may come back */
};

#define H2_WS_KEY 24 /* bytes of a Sec-WebSocket-Key */

/* The whole list is there. Writes
 *
 *	METHOD https://AUTHORITY/PATH HTTP/1.1		and `host:` the Host field or, without one, :authority
 *	OPTIONS * HTTP/1.1				the same
 *	CONNECT AUTHORITY HTTP/1.1			the same
 *	GET https://AUTHORITY/PATH HTTP/1.1		for :protocol websocket, with upgrade, connection and ws_key
 *
 * and the fields; cookies are joined. A Host that differs from :authority is written as it is: the checks of
 * HTTP/1.1 see both. end: the stream ends with this list. ws_key: H2_WS_KEY bytes, looked at only for a websocket.
 * CAGE_EPROTO: malformed; CAGE_ELIMIT: it does not fit. */
enum cage_status h2_write_request(const struct h2_fields *f, bool end, struct slice ws_key, struct text *t,
				  struct h2_body *body) MUST_CHECK;

/* method: of the request that this answers. A 1xx (never 101) is an interim response: another list follows it, and
 * body is not touched. */
enum cage_status h2_write_response(const struct h2_fields *f, bool end, struct slice method, struct text *t,
				   struct h2_body *body) MUST_CHECK;

/* The status of a response that h2_write_response() has taken. */
int h2_fields_status(const struct h2_fields *f);

/* DATA, as the head has promised them. CAGE_EPROTO: more than that; nothing was written. */
enum cage_status h2_body_write(struct h2_body *b, struct stream *s, struct slice data) MUST_CHECK;

/* The end of the stream: the last chunk, if it is in chunks, and the trailers. NULL: there are none. Where no body is
 * promised they are left out. CAGE_EPROTO: it ends too early. */
enum cage_status h2_body_end(struct h2_body *b, struct stream *s, const struct h2_fields *trailers) MUST_CHECK;

/* ---- nghttp2's lists out ---- */

/* In the arena, or pointing into the message: valid until either is gone. */
struct h2_nv {
	nghttp2_nv *nv;
	size_t n;
};

/* What h1_parse_request() made of a head in origin-form; scheme https, :authority from Host. Fields that may carry a
 * credential are never put into a table of the peer's. CAGE_EPROTO: CONNECT, or a target in another form. */
enum cage_status h2_nv_request(const struct message *m, struct arena *arena, struct h2_nv *out) MUST_CHECK;

/* What h1_parse_response() made of a head. */
enum cage_status h2_nv_response(const struct message *m, struct arena *arena, struct h2_nv *out) MUST_CHECK;

/* Those of an h1_body. */
enum cage_status h2_nv_trailers(const struct field *fields, size_t n, struct arena *arena,
				struct h2_nv *out) MUST_CHECK;

#endif
