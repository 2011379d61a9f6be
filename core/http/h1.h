/* HTTP/1.x, strictly: reject, never repair (THREATS T22, T23). Start reading here.
 *
 * Reading a head takes two steps. h1_gate() looks at bytes as they arrive and says at the first forbidden one that
 * there will never be a head here; when it has seen the empty line, h1_parse_request() or h1_parse_response()
 * turns the head into a message. Bodies go through struct h1_body, which hands out slices of the input.
 * Writing makes every byte afresh from the message. */
#ifndef CAGE_HTTP_H1_H
#define CAGE_HTTP_H1_H

#include "core/base/arena.h"
#include "core/base/reason.h"
#include "core/base/slice.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/http/message.h"

/* ---- heads in ---- */

enum h1_gate_kind { H1_GATE_REQUEST, H1_GATE_RESPONSE, H1_GATE_TRAILERS };

/* Where the gate stands in a head that arrives piece by piece. To start: {.kind = ...}, all else zero. */
struct h1_gate {
	enum h1_gate_kind kind;
	size_t seen;    /* bytes of the input looked at so far */
	unsigned state; /* private to h1_gate.c */
	size_t run;     /* private */
};

/* Looks at input from gate->seen on; input always starts with the first byte of the head.
 * CAGE_OK: a whole head is there, *head_len bytes with its empty line. CAGE_AGAIN: so far so good, more is needed.
 * CAGE_EPROTO: a byte that no head may have (bare CR or LF, NUL, control, HTTP/0.9, leading blank in a line, ...).
 * CAGE_ELIMIT: longer than LIMIT_HEAD (trailers: LIMIT_TRAILERS). */
enum cage_status h1_gate(struct h1_gate *gate, struct slice input, size_t *head_len) MUST_CHECK;

/* Why a head was refused, for the log and for the person who reads the 400. */
struct h1_error {
	enum reason reason; /* FRAMING_AMBIGUOUS, HEAD_MALFORMED, HEAD_TOO_LARGE, TARGET_MALFORMED */
	const char *what;   /* one plain sentence; static; says nothing of the peer's bytes */
};

/* head: exactly what the gate let through. Slices in *out point into head (copy it first if it does not stay);
 * fields come from the arena. CAGE_OK, CAGE_EPROTO, CAGE_ELIMIT or CAGE_ENOMEM; err is set on the latter three. */
enum cage_status h1_parse_request(struct slice head, struct arena *arena, struct message *out,
				  struct h1_error *err) MUST_CHECK;

/* method: of the request that this answers, since HEAD decides about the body. */
enum cage_status h1_parse_response(struct slice head, struct slice method, struct arena *arena, struct message *out,
				   struct h1_error *err) MUST_CHECK;

/* ---- bodies in ---- */

enum h1_body_state {
	H1_BODY_DATA, /* BODY_LENGTH or BODY_CLOSE: bytes of the body */
	H1_BODY_CHUNK_SIZE,
	H1_BODY_CHUNK_EXT,
	H1_BODY_CHUNK_SIZE_LF,
	H1_BODY_CHUNK_DATA,
	H1_BODY_CHUNK_CR,
	H1_BODY_CHUNK_LF,
	H1_BODY_TRAILERS,
	H1_BODY_END
};

/* Where a chunk extension stands: ;name, ;name=token, ;name="quoted". */
enum h1_ext_state {
	H1_EXT_NAME_START,
	H1_EXT_NAME,
	H1_EXT_VALUE_START,
	H1_EXT_VALUE,
	H1_EXT_QUOTED,
	H1_EXT_QUOTED_PAIR,
	H1_EXT_QUOTED_END
};

struct h1_body {
	enum h1_body_state state;
	enum h1_ext_state ext; /* in H1_BODY_CHUNK_EXT */
	enum body_framing framing;
	bool is_inner;   /* with BODY_LENGTH: trailers follow */
	uint64_t left;   /* of the length or of the chunk */
	size_t line_len; /* of the chunk-size line so far */
	unsigned digits; /* of the chunk size so far */
	struct h1_gate trailer_gate;
	struct field *trailers; /* from the arena, once H1_BODY_END is reached */
	size_t n_trailers;
};

void h1_body_init(struct h1_body *b, const struct message *m);

/* The same on a stream in memory that has HTTP/2 behind it: a body of a given length is followed by trailers there, as one
 * in chunks is. So they have a place, and it is whole only when HTTP/2 has said so. */
void h1_body_init_inner(struct h1_body *b, const struct message *m);

/* Takes bytes from input: *used says how many, *data is the body part among them (a slice of input, maybe empty).
 * CAGE_OK: call again with the rest. CAGE_AGAIN: input is used up as far as it can be; a piece of a trailer section
 * stays unused until it is whole. CAGE_EOF: the body is complete, what follows `used` is the next message.
 * With each of these three there can be data.
 * CAGE_EPROTO, CAGE_ELIMIT: refuse. Trailers are copied into the arena; framing, routing and authorization
 * fields among them are refused. */
enum cage_status h1_body_feed(struct h1_body *b, struct slice input, struct arena *arena, size_t *used,
			      struct slice *data) MUST_CHECK;

/* The connection ended: CAGE_EOF when that is the right end of this body (BODY_CLOSE), else CAGE_TRUNCATED. */
enum cage_status h1_body_end_of_input(struct h1_body *b);

static inline bool h1_body_is_done(const struct h1_body *b)
{
	return b->state == H1_BODY_END;
}

/* ---- out ---- */

/* What the writer decides afresh; everything else comes from the message. Hop-by-hop fields, Host, Content-Length,
 * Expect, Alt-Svc and X-Cage fields of the message are never copied. */
struct h1_out {
	struct slice target;       /* request: canonical origin-form */
	struct slice host;         /* request: canonical value for Host */
	enum body_framing framing; /* of what we send */
	uint64_t content_length;
	bool declare_length;  /* Content-Length is written: always with BODY_LENGTH, and where HEAD or 304 declared one
			       */
	bool close;           /* write Connection: close */
	bool keep_trailer_te; /* write TE: trailers, since the client offered it */
	bool websocket;       /* write the Upgrade to websocket; with neither of the two above */
};

void h1_write_request(struct text *t, const struct message *m, const struct h1_out *o);

/* Always HTTP/1.1 as version; the phrase is kept when it is clean. */
void h1_write_response(struct text *t, const struct message *m, const struct h1_out *o);

#define H1_CHUNK_HEAD 18 /* longest "hex CRLF" */

void h1_write_chunk_head(struct text *t, size_t n);

/* Trailers but for dropped ones, and the empty line behind them. */
void h1_write_trailers(struct text *t, const struct field *trailers, size_t n_trailers);

/* The last chunk and the trailers. */
void h1_write_chunk_end(struct text *t, const struct field *trailers, size_t n_trailers);

#endif
