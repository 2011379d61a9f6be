/* Shannon entropy of bytes, in bits per byte. */
#ifndef CAGE_INSPECTORS_SHANNON_H
#define CAGE_INSPECTORS_SHANNON_H

#include "core/base/slice.h"

#define SHANNON_BYTES 1024 /* the most that is measured at once */

/* Of at most SHANNON_BYTES bytes; 0 of none. */
double shannon(struct slice bytes);

/* More than it can be, from the number of bytes above 0x7f alone: 7 for ASCII. Costs a twentieth of measuring it. */
double shannon_ceiling(struct slice bytes);

#endif
