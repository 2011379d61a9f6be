/* What the files of the HTTP/2 client share: the connection, and a call, which is one request and its response. */
#ifndef CAGE_PROXY_H2_CLIENT_PRIVATE_H
#define CAGE_PROXY_H2_CLIENT_PRIVATE_H

#include <nghttp2/nghttp2.h>

#include "core/http/h1.h"
#include "proxy/h2_budget.h"
#include "proxy/h2_client.h"
#include "proxy/h2_frames.h"
#include "proxy/h2_session.h"
#include "proxy/h2_text.h"
#include "proxy/h2_windows.h"

enum h2_client_state {
	H2_CLIENT_OPEN,
	H2_CLIENT_LEAVING, /* no call more; those under way go on */
	H2_CLIENT_ENDED,   /* on_end was called */
	H2_CLIENT_FREED    /* waits to be freed at the end of the pass */
};

#define H2_CLIENT_MAGIC 0x42c11e47u

struct h2_client {
	unsigned magic;
	enum h2_client_state state;
	bool is_malformed; /* the origin has broken the protocol of the connection, and so of every call */
	struct loop *loop;
	struct stream *up;
	const struct h2_client_cb *cb;
	void *arg;
	nghttp2_session *session;
	struct h2_call *calls;
	size_t n_calls;
	uint64_t heard_us; /* when the origin last sent anything */
	struct h2_budget budget;
	struct h2_frames frames;
	struct h2_windows windows;
	struct arena scratch;    /* for one request head or trailer section */
	struct arena list;       /* for the list that arrives: no other frame can come in between */
	struct h2_fields fields; /* of it */
	struct deferred work;    /* sends, ends, or frees */
};

/* The request's side. */
enum h2_call_out {
	H2_CALL_OUT_HEAD,    /* waits for a head from the inner stream */
	H2_CALL_OUT_BODY,    /* nghttp2 asks for the body when there is room for it */
	H2_CALL_OUT_WAITING, /* it has asked, and there was nothing */
	H2_CALL_OUT_ENDED    /* nghttp2 has all of it */
};

/* The response's side. */
enum h2_call_in {
	H2_CALL_IN_HEAD, /* interim ones may have come */
	H2_CALL_IN_BODY,
	H2_CALL_IN_ENDED
};

/* What its end is when the response is not whole. */
enum h2_call_fault {
	H2_CALL_CUT,
	H2_CALL_UNSEEN, /* the origin has said that it did not look at it */
	H2_CALL_MALFORMED
};

struct h2_call {
	struct h2_client *client;
	struct h2_call *next, *prev;
	int32_t id;           /* of its HTTP/2 stream; 0: not yet */
	struct stream *inner; /* our end */
	enum h2_call_out out;
	enum h2_call_in in;
	struct h1_gate gate;
	struct h1_body request;
	struct slice method;  /* "HEAD", or "GET" for all that differ from it */
	struct h2_body reply; /* DATA as the head has promised them */
	unsigned interim;     /* 1xx so far */
	enum h2_call_fault fault;
	struct h2_untaken untaken; /* of the response */
};

/* ---- the connection ---- */

bool h2_client_is_live(const struct h2_client *h);

/* Sends what nghttp2 has, at the end of the pass; ends the connection if it is over. */
void h2_client_send_later(struct h2_client *h);

/* So many frames that carry nothing have come. Too many of them: ends the connection once the origin was told so. */
void h2_client_pay(struct h2_client *h, size_t n);

/* The callbacks of nghttp2, made once; NULL without memory. */
const nghttp2_session_callbacks *h2_client_callbacks(void);

/* ---- calls ---- */

/* *theirs: the inner stream for the owner. NULL without memory. */
struct h2_call *h2_call_new(struct h2_client *h, struct stream **theirs);

/* The call of that HTTP/2 stream; NULL: none, or it was given up. */
struct h2_call *h2_call_of(struct h2_client *h, int32_t id);

/* It is over, and gone: the inner stream ends as far as the response has come. */
void h2_call_end(struct h2_call *c);

/* The same, and the origin sees a stream error. */
void h2_call_cancel(struct h2_call *c, uint32_t code);

/* The same, since what it says is not well-formed. */
void h2_call_refuse(struct h2_call *c, uint32_t code);

/* There may be something to take from the inner stream. May end the call. */
void h2_call_pump(struct h2_call *c);

/* The list in client->fields is whole: a head or trailers. May end the call. */
void h2_call_list(struct h2_call *c, bool end);

/* DATA, and the end of the stream without trailers. May end the call. */
void h2_call_data(struct h2_call *c, struct slice data);
void h2_call_data_end(struct h2_call *c);

#endif
