/* What the tests of the HTTP/2 server share: a client made of nghttp2 at the other end of a stream in memory, and the
 * inner streams, whose side is played by hand. */
#ifndef CAGE_TESTS_H2_SERVER_H
#define CAGE_TESTS_H2_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/net/stream.h"
#include "proxy/h2_server_private.h"

#define MAX_PASSES 1000000
#define MAX_INNER 200
#define MAX_STREAMS 4096 /* of the client */
#define TEXT_ROOM 4096
#define NOT_CLOSED UINT32_MAX

/* A stream as the client sees it. */
struct seen {
	char fields[TEXT_ROOM]; /* "name=value\n", a list after the other, each with a line "--" behind it */
	size_t fields_len;
	char body[TEXT_ROOM]; /* the beginning of it */
	uint64_t body_len;
	size_t n_data;   /* DATA frames */
	bool end;        /* END_STREAM was there */
	uint32_t closed; /* with this code, or NOT_CLOSED */
	uint32_t reset;  /* RST_STREAM with this code, or NOT_CLOSED */
	struct slice upload;
	bool upload_ends, has_trailer;
};

/* The owner's end of an inner stream. */
struct inner {
	struct stream *s;
	bool hold;            /* reads nothing */
	char text[TEXT_ROOM]; /* the beginning of what came */
	uint64_t len;
	unsigned ends;
	enum cage_status how;
};

struct fixture {
	struct loop *loop;
	struct event *keep_alive; /* so that a pass always ends */
	struct h2_server *server;
	struct stream *up; /* the client's end */
	nghttp2_session *client;
	bool client_is_deaf, client_takes_nothing; /* reads nothing; opens no window again */
	struct seen *seen[MAX_STREAMS];            /* by id / 2 */
	uint32_t goaway;                           /* the code of one that came, or NOT_CLOSED */
	struct inner inner[MAX_INNER];
	size_t n_inner;
	bool free_at_request;
	unsigned malformed, ended;
	enum reason reason, end_reason;
};

extern struct fixture *fx;

int setup(void **state);
int teardown(void **state);

#define RUN_UNTIL(cond)                       \
	do {                                  \
		unsigned left = MAX_PASSES;   \
		while (!(cond) && left-- > 0) \
			pass();               \
		assert_true(cond);            \
	} while (0)

/* One turn of the loop, which does not wait; the same after the client has sent what it has. */
void turn(void);
void pass(void);
void run_passes(unsigned n);

/* A request with these fields, "name=value\n" each; more of it follows unless it ends at once. */
int32_t request(const char *fields, bool end);

#define GET ":method=GET\n:scheme=https\n:authority=a.test\n:path=/x\n"
#define POST ":method=POST\n:scheme=https\n:authority=a.test\n:path=/x\n"
#define WEBSOCKET ":method=CONNECT\n:protocol=websocket\n:scheme=https\n:authority=a.test\n:path=/ws\n"

/* Bytes of that request's body; borrowed until they are sent. A trailer "t: v" ends it. */
void upload(int32_t id, struct slice bytes, bool end);
void upload_with_trailer(int32_t id, struct slice bytes);

struct seen *seen_of(int32_t id);

/* Fields of all lists so far, as in struct seen. */
void assert_fields(int32_t id, const char *expected);
void assert_body(int32_t id, const char *expected);
void assert_inner_text(size_t i, const char *expected);

/* The inner stream writes. It reads on, after it had held. */
void reply(size_t i, const char *text);
void let_go(size_t i);

#endif
