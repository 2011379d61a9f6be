/* What cage-fetch answers: one JSON object. */
#ifndef CAGE_FETCH_REPLY_H
#define CAGE_FETCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct reply {
	long status;
	json_t *headers; /* [[name, value], ...] of the answer that counts */
	size_t head_len; /* bytes of them */
	char *body;
	size_t body_len, body_room;
	bool is_truncated;
};

/* {"status", "headers", "body" or "body_base64", "truncated"}, on stdout. False: it could not be written. */
bool reply_print(const struct reply *r);

/* {"error", "message"} */
bool reply_print_error(const char *word, const char *message);

/* One line of the head of an answer. False: there is too much of it. */
bool reply_add_line(struct reply *r, const char *line, size_t len);

/* Some of the body, up to max bytes. False: that was one too many, and what there is was cut. */
bool reply_add_body(struct reply *r, const char *bytes, size_t len, size_t max);

void reply_free(struct reply *r);

#endif
