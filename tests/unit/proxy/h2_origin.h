/* What the tests of the HTTP/2 client share: an origin made of nghttp2 at the other end of a stream in memory, and the
 * owners' ends of inner streams. */
#ifndef CAGE_TESTS_H2_ORIGIN_H
#define CAGE_TESTS_H2_ORIGIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/net/stream.h"
#include "proxy/h2_client_private.h"
#include "tests/unit/bytes.h"

#define MAX_PASSES 20000
#define MAX_INNER (LIMIT_H2_STREAMS + 8)
#define NOT_CLOSED UINT32_MAX

struct pair {
	const char *name, *value;
};

#define LIST(...) ((const struct pair[]){__VA_ARGS__, {NULL, NULL}})
#define HTTP_200                 \
	{                        \
		":status", "200" \
	}

/* A request as the origin sees it, and what it answers. */
struct seen {
	struct bytes fields; /* "name=value\n"; a list after the other, each with a line "--" behind it */
	struct bytes body;
	bool end;
	uint32_t closed; /* with this code, or NOT_CLOSED */
	struct slice reply;
	bool reply_pauses; /* there will be more of it */
	const struct pair *reply_trailers;
};

/* The owner's end of an inner stream. */
struct inner {
	struct stream *s;
	bool hold; /* reads nothing */
	struct bytes got;
	unsigned ends, drained;
	enum cage_status how;
};

struct fixture {
	struct loop *loop;
	struct event *tick; /* so that a pass always ends */
	struct h2_client *client;
	struct stream *up, *down; /* the client's end; the origin's */
	nghttp2_session *origin;
	bool origin_takes_nothing; /* opens no window again */
	struct seen *seen;         /* by id / 2 */
	uint32_t goaway;           /* the code of one that came, or NOT_CLOSED */
	unsigned settings_acks;
	struct inner inner[MAX_INNER];
	unsigned ended;    /* calls of on_end */
	bool frees_at_end; /* in it */
};

extern struct fixture fx;

int setup(void **state);
int teardown(void **state);

/* One turn: the origin sends, everybody reads. */
void pass(void);
void run_passes(unsigned n);

#define RUN_UNTIL(cond)                       \
	do {                                  \
		unsigned left = MAX_PASSES;   \
		while (!(cond) && left-- > 0) \
			pass();               \
		assert_true(cond);            \
	} while (0)

/* Opens inner stream i and writes the text to it. */
struct inner *ask(size_t i, const char *text);
struct inner *ask_get(size_t i);
bool inner_has(const struct inner *in, const char *text);
bool inner_is(const struct inner *in, const char *text);

/* The request of that HTTP/2 stream: 1, 3, 5 and so on. */
struct seen *seen(int32_t id);
bool has_field(int32_t id, const char *line);

/* A head or trailers as they are, without a body. */
void send_list(int32_t id, const struct pair *list, bool end);

/* A response with a body. */
void answer(int32_t id, const struct pair *list, struct slice body, const struct pair *trailers);

/* Bytes on the wire. */
void send_raw(struct slice bytes);

#endif
