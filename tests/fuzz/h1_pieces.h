/* What the two HTTP/1 targets have in common: heads and bodies that arrive in pieces must be read as if they had come
 * whole, and a message that was written must be read as what it was. */
#ifndef CAGE_TESTS_FUZZ_H1_PIECES_H
#define CAGE_TESTS_FUZZ_H1_PIECES_H

#include "core/base/limits.h"
#include "core/http/h1.h"
#include "tests/fuzz/fuzz.h"

/* A body as it was read to its end, or as far as it goes. */
struct body {
	enum cage_status end; /* CAGE_EOF: whole. CAGE_AGAIN: the input ended before */
	size_t used;          /* bytes of the input */
	char *data;           /* freed with body_free() */
	size_t len;
	const struct field *trailers;
	size_t n_trailers;
};

/* The verdict of the gate on input, which must be the same in pieces. *head_len is set with CAGE_OK. */
enum cage_status gate_both_ways(enum h1_gate_kind kind, struct slice input, uint64_t sizes, size_t *head_len);

/* The body of m in input, which must be the same in pieces. */
struct body body_both_ways(const struct message *m, struct slice input, uint64_t sizes, struct arena *arena);

void body_free(struct body *b);

/* At most one field of a message that was accepted says where its body ends. */
void framing_must_be_clear(const struct message *m);

/* The fields that the second message has are those that the first one passes on, in order and unchanged. */
void fields_must_match(const struct message *first, const struct message *second);

/* Writes a whole body as the proxy sends it and reads it back: it ends where it ends, and is the same. */
void body_must_survive(const struct message *m, const struct body *b, struct arena *arena);

#endif
