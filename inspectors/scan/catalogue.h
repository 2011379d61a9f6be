/* The table that mkcatalogue writes when cage is built. */
#ifndef CAGE_INSPECTORS_CATALOGUE_H
#define CAGE_INSPECTORS_CATALOGUE_H

#include "inspectors/scan/format.h"

extern const struct format catalogue_formats[];
extern const size_t catalogue_n;

/* Their database, as scan_set_compile() made it. */
extern const struct slice catalogue_bytes;

#endif
