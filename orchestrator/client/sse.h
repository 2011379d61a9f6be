/* Server-sent events, as the HTML standard has them, in pieces of any size. */
#ifndef CAGE_CLIENT_SSE_H
#define CAGE_CLIENT_SSE_H

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/status.h"

enum sse_state {
	SSE_START, /* nothing yet: a byte order mark may come */
	SSE_LINE,
	SSE_AFTER_CR /* a line has ended; an LF now is a part of that end */
};

struct sse {
	enum sse_state state;
	char name[LIMIT_CLIENT_EVENT_NAME]; /* of the event; cut where it is longer, which no event of ours is */
	size_t name_len;
	char *buf;       /* LIMIT_CLIENT_EVENT: data, then the line that is being read */
	size_t data_len; /* with a line break behind each line of it */
	size_t line_len;
};

/* False: no memory. */
bool sse_init(struct sse *s) MUST_CHECK;
void sse_free(struct sse *s);

/* One event: name is "message" where it has none; data without its last line break. False: no more are wanted. */
typedef bool sse_taker(void *arg, struct slice name, struct slice data);

/* CAGE_OK: all was read. CAGE_EOF: the taker wants no more. CAGE_ELIMIT: an event is longer than LIMIT_CLIENT_EVENT. */
enum cage_status sse_feed(struct sse *s, struct slice input, sse_taker *take, void *arg) MUST_CHECK;

#endif
