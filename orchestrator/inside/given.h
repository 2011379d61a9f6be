/* What a container that was started before anybody had asked for it is given when somebody has: the words that its command goes on
 * with, variables, files. It is one text, the value of one key of a config map:
 *
 *	cage-run-1 HASH BASE64
 *
 * HASH is that of the digits behind it (core/base/hash.h), 16 hex digits, so that a text of which only a part is there yet is none. It
 * does not say who has written it: who may write a config map may run whatever he likes anyway.
 *
 * The bytes are records: a kind, a length of four bytes, the highest first, and so many bytes. */
#ifndef CAGE_INSIDE_GIVEN_H
#define CAGE_INSIDE_GIVEN_H

#include "core/base/slice.h"

enum given_kind {
	GIVEN_WORD = 'w',
	GIVEN_VARIABLE = 'v', /* NAME=VALUE */
	GIVEN_FILE = 'f',     /* path, NUL, what is in it */
	GIVEN_KEY = 'k',      /* path of a file of GIVEN_KEY_LEN random bytes, which nobody outside knows */
	GIVEN_ONCE =
		'o' /* path of a file that is there once this text was used; each text has one, of its container alone */
};

#define GIVEN_KEY_LEN 32

struct given_record {
	enum given_kind kind;
	struct slice bytes; /* of a GIVEN_FILE: what is in it */
	struct slice path;  /* of GIVEN_FILE, GIVEN_KEY and GIVEN_ONCE: absolute */
};

/* ---- writing ---- */

struct given {
	char *bytes; /* owned */
	size_t n, room;
	bool failed; /* no memory, or too much */
};

/* path: of what has one, else empty. */
void given_add(struct given *g, enum given_kind kind, struct slice path, struct slice bytes);

/* The text, to be freed; NULL: it has failed. What was added is gone. */
char *given_text(struct given *g);
void given_free(struct given *g);

/* ---- reading ---- */

/* Blanks at the end are no part of it. False: it is not whole, or too long for the room. */
bool given_open(struct slice text, char *room, size_t size, struct slice *records);

/* All of them, each as it has to be, and one GIVEN_ONCE among them? */
bool given_is_good(struct slice records);

/* The next one of good records; false: there is none. */
bool given_next(struct slice *records, struct given_record *out);

#endif
