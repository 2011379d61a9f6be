/* What a value must fulfil beyond its shape: enough entropy, a checksum, a structure. */
#ifndef CAGE_INSPECTORS_CHECKS_H
#define CAGE_INSPECTORS_CHECKS_H

#include "inspectors/scan/format.h"

/* "jwt", "crc32" and so on, as the catalogue and policies write them; CHECK_NONE is "". */
struct slice format_check_text(enum format_check check);

/* Shannon entropy, in bits per byte. */
double value_entropy(struct slice value);

/* Is the value what the format says, as far as a calculation can tell? */
bool value_passes(const struct format *format, struct slice value);

#endif
