/* Which windows of a body look random.
 *
 * Windows lie at fixed places, however the body is cut into pieces: all of the first ones are measured, then one in
 * each group, at a place that differs from group to group and from process to process, so that nobody can put what is
 * random between them. Most cost no more than a look at which bytes are ASCII. Content that is random by nature is not
 * measured at all. */
#ifndef CAGE_INSPECTORS_WINDOWS_H
#define CAGE_INSPECTORS_WINDOWS_H

#include "inspectors/sniff.h"

#define WINDOW SNIFF_BYTES

/* One body, or one part of it. */
struct windows {
	uint64_t base; /* where it begins in the body */
	uint64_t at;   /* bytes of it so far */
	enum content_kind kind;
	bool is_kind_known;
	size_t filled;
	char bytes[WINDOW]; /* a window that is not yet whole */
};

/* At that offset of the body. Zeroed memory is ready for offset 0. */
void windows_begin(struct windows *w, uint64_t base);

/* True as soon as a window is random: has so many bits per byte. */
bool windows_feed(struct windows *w, struct slice piece, double threshold);

/* There is no more: is the rest random? */
bool windows_end(struct windows *w, double threshold);

/* Where in the body the window begins that was found to be random. */
uint64_t windows_last(const struct windows *w);

#endif
