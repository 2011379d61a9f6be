/* What the files of this folder share. A *way* is one item in one form: with base64, at one alignment. */
#ifndef CAGE_INSPECTORS_KNOWN_PRIVATE_H
#define CAGE_INSPECTORS_KNOWN_PRIVATE_H

#include "inspectors/known/known.h"

#define KNOWN_DIGITS 32 /* that follow the bytes of a KNOWN_RANDOM_PLACEHOLDER */
#define KNOWN_SKIPS 8   /* zero-width characters in a loose match, for each byte of the value */

struct known_way {
	const struct known_item *item;
	enum known_form form;
	unsigned align; /* as in struct known_match */
};

enum compare {
	COMPARE_DIFFERS,
	COMPARE_GOOD, /* as far as the text goes; more of it decides */
	COMPARE_EQUAL
};

/* Bytes of the value, with the digits of a random placeholder. */
size_t known_item_length(const struct known_item *item);

/* The most bytes that a value takes when it is written so. */
size_t known_way_reach(const struct known_way *way);

/* Does the text begin with the value? *len: how many of its bytes are the value, with COMPARE_EQUAL. Greedy: a byte
 * that may be read in two ways is read as the escape. */
enum compare known_compare(const struct known_way *way, struct slice text, size_t *len);

/* A set of bytes: a bit for each. */
struct known_bytes {
	uint64_t bits[4];
};

/* A text that begins with `start`, which is good but not the whole value yet, differs if another byte comes next. With
 * one of these it may differ too. */
struct known_bytes known_next_bytes(const struct known_way *way, struct slice start);

/* Where a search goes on. In base64 the digit there may belong to two values, the end of one and the start of the next:
 * align is then the alignment of one that follows without a gap. 0: the whole byte is free. */
struct known_place {
	size_t at;
	unsigned align;
};

/* Behind a match. */
struct known_place known_behind(const struct known_match *m);

/* As known_find(), for what begins before `limit`. */
enum known_answer known_next(const struct known_set *set, struct slice text, struct known_place from, size_t limit,
			     bool is_end, struct known_match *m);

#endif
