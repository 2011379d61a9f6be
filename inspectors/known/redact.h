/* Takes values out of a text that comes in pieces, and puts their placeholders there, written as the value was. All
 * other bytes are as they were. Only what may be the beginning of a value is kept back, until the next byte or the end
 * decides.
 *
 * In base64 everything behind the value moves, so the rest of the run is written afresh: decoded, it is what it was
 * but for the value. It stays in the alphabet that it was in, and gets padding where it had some, or where it had none
 * because it was made of whole groups in the standard alphabet. */
#ifndef CAGE_INSPECTORS_REDACT_H
#define CAGE_INSPECTORS_REDACT_H

#include "core/base/arena.h"
#include "inspectors/known/known.h"

/* Bytes that may go on; borrowed for the call. */
typedef void redact_sink(void *arg, struct slice bytes);

struct redactor;

/* set: of values. placeholders: what replaces the value of each secret, by its index; borrowed, like the set. NULL: no
 * memory. */
struct redactor *redactor_new(const struct known_set *set, const struct slice *placeholders, redact_sink *sink,
			      void *arg);

/* To be called before the first piece, for a text that tells lengths of its own: each value is overwritten with as many
 * bytes, so that all others stay where they are. */
void redactor_keep_length(struct redactor *r);

/* From the next piece on, and for what is kept back. */
void redactor_set_known(struct redactor *r, const struct known_set *set);

/* CAGE_ENOMEM: the text must not go on. After the end another text may come. */
enum cage_status redactor_feed(struct redactor *r, struct slice piece) MUST_CHECK;
enum cage_status redactor_end(struct redactor *r) MUST_CHECK;

/* The secrets that were taken out so far: a bit for each. */
uint64_t redactor_found(const struct redactor *r);

/* Bytes that are kept back now. */
size_t redactor_kept(const struct redactor *r);

/* Cleanses what it kept. */
void redactor_free(struct redactor **r);

/* A whole text at once. *out is text itself when nothing was found, else in the arena. */
enum cage_status redact_text(const struct known_set *set, const struct slice *placeholders, struct slice text,
			     struct arena *arena, struct slice *out, uint64_t *found) MUST_CHECK;

#endif
