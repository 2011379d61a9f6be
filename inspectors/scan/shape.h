/* What a match of a format can look like where only some bytes can stand: read off its pattern, always on the safe side. A
 * text in which no match can begin need not be scanned. */
#ifndef CAGE_INSPECTORS_SHAPE_H
#define CAGE_INSPECTORS_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "inspectors/scan/format.h"

struct byte_set {
	uint64_t bits[4];
};

static inline bool byte_set_has(const struct byte_set *s, unsigned char c)
{
	return s->bits[c >> 6] >> (c & 63) & 1;
}

static inline void byte_set_add(struct byte_set *s, unsigned char c)
{
	s->bits[c >> 6] |= UINT64_C(1) << (c & 63);
}

#define SHAPE_FIRST 3

/* All strings that a pattern can match and that consist of the given bytes only. */
struct shape {
	bool is_possible;                   /* there are such */
	unsigned least, most;               /* bytes of them */
	struct byte_set first[SHAPE_FIRST]; /* what their first bytes can be; of those that are long enough */
	struct byte_set all;                /* what can be in them anywhere */
};

/* False: the pattern has something in it that is not understood here. */
bool shape_of(const struct format *f, const struct byte_set *alphabet, struct shape *out);

#endif
