/* The decision log of the gateway's proxy: DIR/decisions.jsonl, which is turned at a bound, and so many files of before. A place in it
 * is a number of bytes since its beginning, whatever files are still there; the instance says which beginning that is. */
#ifndef CAGE_GATEWAY_LOG_H
#define CAGE_GATEWAY_LOG_H

#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/text.h"

#define LOG_INSTANCE 16 /* hex digits */
#define LOG_CURSOR 40   /* bytes of a cursor, with its NUL */

enum log_state {
	LOG_ABSENT, /* the proxy has not made it yet */
	LOG_LIVE,   /* it writes there */
	LOG_TURNING /* it has another name, and the proxy was told to begin a new one */
};

struct gateway_log {
	enum log_state state;
	char dir[LIMIT_GATEWAY_DIR];
	char instance[LOG_INSTANCE + 1];
	int live;      /* what is written to now; -1: LOG_ABSENT */
	uint64_t base; /* its place */
	struct {
		uint64_t base, size;
	} old[LIMIT_GATEWAY_LOG_FILES_MAX]; /* the oldest first */
	size_t n_old, most_old;
	uint64_t most_bytes; /* before it is turned */
	uint64_t copied;     /* place up to which it went to stdout, ... */
	int place;           /* ... and the file that has it: who is started anew goes on there */
};

/* Finds what is there already. False with a message. */
bool log_open(struct gateway_log *l, const char *dir, uint64_t most_bytes, size_t most_old);
void log_close(struct gateway_log *l);

/* The path of what the proxy writes. */
void log_path(const struct gateway_log *l, char out[LIMIT_GATEWAY_PATH]);

/* From time to time: turns it, and copies what is new to stdout. True: the proxy has to be told to open it anew. */
bool log_look(struct gateway_log *l);

/* At the end, when the proxy writes no more: what is left goes to stdout, as far as its reader takes it within a time. */
void log_finish(struct gateway_log *l);

/* The place behind all that there is. */
uint64_t log_end(const struct gateway_log *l);

/* What else is to be said of lines. */
struct log_told {
	bool is_lost;  /* lines before them are not kept any more */
	bool has_more; /* it was not looked through up to its end */
};

/* The lines of one sandbox from a place on, as many as an answer has; there may be none of them up to a bound, and more behind it.
 * *at becomes where to go on. */
struct log_told log_lines(struct gateway_log *l, struct slice sandbox, uint64_t *at, struct text *out);

/* A place as those outside have it: "INSTANCE-PLACE". */
void log_cursor(const struct gateway_log *l, uint64_t at, char out[LOG_CURSOR]);

#endif
