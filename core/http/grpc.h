/* gRPC and its kin inside a body of HTTP: messages, each behind a flag that says whether it is compressed and its length. Two
 * layers: struct grpc_reader finds the messages, in either direction; struct grpc_inflate is on top of it and gives the
 * text that an inspector should see. Neither changes what goes on: that is the body as it came.
 *
 * What can't be read is an error: a flag that the kind does not have, a message longer than LIMIT_GRPC_MESSAGE, a body that ends
 * inside a message, an encoding that we can't undo (THREATS T26). */
#ifndef CAGE_HTTP_GRPC_H
#define CAGE_HTTP_GRPC_H

#include "core/base/slice.h"
#include "core/base/status.h"
#include "core/http/decode.h"
#include "core/http/message.h"

/* What a body consists of. */
enum grpc_kind {
	GRPC_NONE,
	GRPC_NATIVE,  /* application/grpc */
	GRPC_WEB,     /* application/grpc-web: a message may be the trailers */
	GRPC_TEXT,    /* application/grpc-web-text: the same in base64, which is not undone here */
	GRPC_CONNECT, /* application/connect: a message may be the end of the stream */
};

/* What this value of Content-Type says, with or without parameters; each of them may have "+anything" behind it, and
 * application/connect must. */
enum grpc_kind grpc_kind_of(struct slice value);

/* By the first field of a head that says so: nobody knows which of several the peer goes by. */
enum grpc_kind grpc_kind_of_message(const struct message *m);

/* The field that tells how compressed messages are. */
struct slice grpc_encoding_field(enum grpc_kind kind);

/* What a value of that field is to decode.h: "gzip", "deflate", or empty when nothing is to be undone (identity, or
 * no value at all). CAGE_EPROTO: an encoding that we don't have, or more than one. */
enum cage_status grpc_encoding_parse(struct slice value, struct slice *coding) MUST_CHECK;

/* ---- messages ---- */

#define GRPC_PREFIX 5 /* bytes in front of each message: flag and length */

enum grpc_state { GRPC_IN_PREFIX, GRPC_IN_MESSAGE, GRPC_BROKEN };

/* To start: all zero, but for the kind. */
struct grpc_reader {
	enum grpc_kind kind;
	bool any_length; /* not only up to LIMIT_GRPC_MESSAGE */
	enum grpc_state state;
	size_t n_prefix; /* bytes of the prefix so far, ... */
	char prefix[GRPC_PREFIX];
	bool is_compressed;
	uint32_t len, left; /* of the message */
};

enum grpc_part_kind { GRPC_BEGIN, GRPC_DATA, GRPC_END };

struct grpc_part {
	enum grpc_part_kind kind;
	bool is_compressed;
	uint32_t len; /* of the whole message */
	/* With GRPC_BEGIN: the prefix, good until the next one; with GRPC_DATA: a part of the input, not empty. */
	struct slice data;
};

/* Takes the next part off the front of *input. CAGE_OK: *part is filled; call again, also when *input is empty, since
 * the end of a message has no bytes of its own. CAGE_AGAIN: the input is used up. CAGE_EPROTO, CAGE_ELIMIT: refuse;
 * there is nothing more to read. */
enum cage_status grpc_next(struct grpc_reader *r, struct slice *input, struct grpc_part *part) MUST_CHECK;

/* The body is over: CAGE_OK between two messages, else CAGE_TRUNCATED; CAGE_EPROTO once it was refused. */
enum cage_status grpc_end_of_input(const struct grpc_reader *r) MUST_CHECK;

/* ---- what they say ---- */

/* Who is told. Anything but CAGE_OK ends it with that status. */
struct grpc_sink {
	/* The bytes in front of a message, as they came: they say something too, to whoever does not read them as a length. */
	enum cage_status (*begin)(void *arg, struct slice prefix);
	/* A piece of a message, borrowed for the call; `codings` is 0 for what the message says, and 1 for a compressed
	 * one as it came, before what that decodes to. */
	decode_sink *piece;
	enum cage_status (*end)(void *arg); /* of a message, also of an empty one */
	void *arg;
};

struct grpc_inflate {
	struct grpc_reader reader;
	struct grpc_sink sink;
	struct slice coding;     /* for decode.h; empty: none */
	struct decoder *decoder; /* of the compressed message that is open */
	uint64_t whole;          /* bytes of the body, up to the end of the last whole message */
	uint64_t fed, made;      /* bytes of all compressed messages: as they came, and decoded */
};

/* encoding: the values of all fields that tell it, joined by commas. CAGE_EPROTO: one that we can't undo, or several. */
enum cage_status grpc_inflate_init(struct grpc_inflate *g, enum grpc_kind kind, struct slice encoding,
				   const struct grpc_sink *sink) MUST_CHECK;

/* The next bytes of the body. CAGE_OK, what grpc_next() or decode.h say of what is broken or too much (CAGE_AGAIN: too
 * many decoders are at work), or what the sink said. A compressed message without an encoding is CAGE_EPROTO. The bound
 * on decoded bytes holds for each message and, at the end of each, for all of them together. After anything but CAGE_OK
 * it is only to be released. */
enum cage_status grpc_inflate_feed(struct grpc_inflate *g, struct slice piece) MUST_CHECK;

/* The body is over: as grpc_end_of_input(). */
enum cage_status grpc_inflate_end(const struct grpc_inflate *g) MUST_CHECK;

void grpc_inflate_release(struct grpc_inflate *g);

#endif
