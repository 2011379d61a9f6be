/* Base64 that is written afresh from the middle of a run on, because what stands there has another length.
 *
 * Bits go in: those of digits that stay, and bytes that are new. Digits come out, in the alphabet that the run showed
 * last. Old and new digits have their place in a group of four: from the old one we know what is a whole byte at the
 * end, from the new one how much padding there is to be. */
#ifndef CAGE_INSPECTORS_KNOWN_RECODE_H
#define CAGE_INSPECTORS_KNOWN_RECODE_H

#include "core/base/slice.h"

struct recode {
	unsigned bits, n_bits; /* in, but not out yet: less than a digit */
	unsigned old_place;    /* of the next digit of the run in its group of four */
	unsigned new_place;    /* of the next one that comes out */
	bool is_url;           /* the last digit in which the alphabets differ was '-' or '_' */
	size_t common;         /* digits behind it in which they don't, of text that was not written afresh */
};

/* The most digits that come out for one byte, and at the end with the padding. */
#define RECODE_BYTE 2
#define RECODE_END 4

/* These bytes go by as they are, and a run may be at their end: which alphabet is it in? */
void recode_note(struct recode *c, struct slice bytes);

/* The next digit is at this place of its group. */
void recode_start(struct recode *c, unsigned place);

/* Each answers how many characters it put to out. */
size_t recode_bits(struct recode *c, unsigned bits, unsigned n, char out[RECODE_BYTE]);

/* The rest of the run's next digit; `used` of its bits are not wanted. */
size_t recode_digit(struct recode *c, char digit, unsigned used, char out[RECODE_BYTE]);

/* The run ends. It gets padding if it had some, or if it had none but was made of whole groups in the standard
 * alphabet: that would have had it. What was no whole byte in the old run is dropped, a single last digit too. */
size_t recode_end(struct recode *c, bool had_padding, char out[RECODE_END]);

#endif
