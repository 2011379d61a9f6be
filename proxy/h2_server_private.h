/* What the files of the HTTP/2 server share: the connection and one of its streams. */
#ifndef CAGE_PROXY_H2_SERVER_PRIVATE_H
#define CAGE_PROXY_H2_SERVER_PRIVATE_H

#include <event2/event_struct.h>
#include <nghttp2/nghttp2.h>

#include "core/http/h1.h"
#include "core/http/ws.h"
#include "proxy/h2_budget.h"
#include "proxy/h2_frames.h"
#include "proxy/h2_server.h"
#include "proxy/h2_session.h"
#include "proxy/h2_text.h"
#include "proxy/h2_windows.h"

enum h2_server_state {
	H2_SERVER_NEW, /* not a byte has come */
	H2_SERVER_OPEN,
	H2_SERVER_ANSWERING, /* is to leave when the requests under way are answered ... */
	H2_SERVER_PARTING,   /* ... and the client has had time to read that */
	H2_SERVER_LEAVING,   /* GOAWAY is on its way; requests under way go on */
	H2_SERVER_ENDED,     /* on_end was called */
	H2_SERVER_FREED      /* waits to be freed at the end of the pass */
};

struct h2_stream;

#define H2_SERVER_MAGIC 0x42e5e47eu

struct h2_server {
	unsigned magic;
	enum h2_server_state state;
	struct loop *loop;
	struct stream *down;
	const struct h2_server_cb *cb;
	void *arg;
	nghttp2_session *session;
	struct h2_stream *streams;
	size_t n_requests;  /* of the streams, those that the owner has got */
	enum reason reason; /* why it ends, if not in good order */
	struct h2_budget budget;
	struct h2_frames frames;
	struct h2_windows windows;
	struct arena scratch; /* for one response head or trailer section */
	struct event look;    /* at responses that the client does not take */
	struct deferred work; /* sends, or frees */
};

/* What the client asked for, as far as the response depends on it. */
enum h2_stream_kind {
	H2_STREAM_UNKNOWN, /* the owner has not got it */
	H2_STREAM_PLAIN,
	H2_STREAM_HEAD,
	H2_STREAM_WEBSOCKET
};

/* The request's side. */
enum h2_in {
	H2_IN_HEAD,
	H2_IN_BODY,
	H2_IN_ENDED,
	H2_IN_LEFT,   /* it has its answer: what still comes is dropped, within bounds */
	H2_IN_REFUSED /* malformed: nothing of it goes on */
};

/* The response's side. */
enum h2_out {
	H2_OUT_HEAD,    /* waits for a head from the inner stream */
	H2_OUT_BODY,    /* nghttp2 asks for the body when there is room for it */
	H2_OUT_WAITING, /* it has asked, and there was nothing */
	H2_OUT_ENDING,  /* nghttp2 has all of it */
	H2_OUT_ENDED,   /* all is sent */
	H2_OUT_FAILED   /* the inner stream broke, and the client sees a reset */
};

struct h2_stream {
	struct h2_server *server;
	struct h2_stream *next, *prev;
	int32_t id;
	enum h2_stream_kind kind;
	enum h2_in in;
	enum h2_out out;
	struct stream *inner;       /* our end; NULL before there is a request, and when it is over */
	enum cage_status inner_end; /* CAGE_OK: it has not ended */

	struct arena arena; /* of the list that arrives */
	struct h2_fields fields;
	struct h2_body body;       /* DATA as the head has promised them */
	struct h2_untaken untaken; /* of the request */
	size_t dropped;            /* bytes, H2_IN_LEFT ... */
	uint64_t left_us;          /* ... since when ... */
	struct event linger;       /* ... which has only so much time without any */
	char nonce[WS_NONCE_LEN];  /* H2_STREAM_WEBSOCKET */

	struct h1_gate gate;
	struct h1_body reply;
	unsigned interim;          /* 1xx so far */
	uint64_t taken, taken_was; /* bytes of the response that nghttp2 has taken; the same at the last look */
	unsigned stuck;            /* looks at which nothing was taken */
};

/* ---- the connection ---- */

/* Sends what nghttp2 has, at the end of the pass. */
void h2_server_send_later(struct h2_server *h);

/* The client does more than it may: ends the connection once it was told so. */
void h2_server_calm(struct h2_server *h);

/* So many frames that carry nothing have come: too many of them are more than it may. */
void h2_server_pay(struct h2_server *h, size_t n);

/* Is it in use, and not ended or freed by its owner meanwhile? */
bool h2_server_is_live(const struct h2_server *h);

/* The callbacks of nghttp2, made once; NULL without memory. */
const nghttp2_session_callbacks *h2_server_callbacks(void);

/* ---- its streams ---- */

struct h2_stream *h2_stream_new(struct h2_server *h, int32_t id);

/* The callbacks of inner streams; arg is the stream. */
extern const struct stream_cb h2_inner_cb;

/* Unhooks it; inner is reset unless the response was sent whole. */
void h2_stream_free(struct h2_stream *st);

/* The stream of that id, or NULL. */
struct h2_stream *h2_stream_of(struct h2_server *h, int32_t id);

/* The client sees a stream error, the owner of the inner stream a reset. */
void h2_stream_reset(struct h2_stream *st, uint32_t code);

/* A list of fields begins; each of them; it is whole. */
void h2_request_begin(struct h2_stream *st);
enum cage_status h2_request_field(struct h2_stream *st, struct slice name, struct slice value) MUST_CHECK;
void h2_request_head(struct h2_stream *st, bool end);
void h2_request_trailers(struct h2_stream *st);

/* DATA, and the end of the stream without trailers. */
void h2_request_data(struct h2_stream *st, struct slice data);
void h2_request_end(struct h2_stream *st);

/* The stream is malformed: resets it and, before it became a request, says so. */
void h2_request_refuse(struct h2_stream *st, enum cage_status why);

/* The answer was sent before the request was whole. A reset right behind it would make some clients (curl) overlook the
 * answer: they get time to read it and to end by themselves. */
void h2_request_leave(struct h2_stream *st);

/* Tells the client that what it has sent was taken. */
void h2_request_acknowledge(struct h2_stream *st);

/* There may be something to take from the inner stream. */
void h2_response_pump(struct h2_stream *st);

/* A look from time to time: does it wait for the client, and for too long? */
bool h2_response_is_stuck(struct h2_stream *st);

#endif
