/* The table that mkcatalogue writes when cage is built. */
#ifndef CAGE_INSPECTORS_CATALOGUE_H
#define CAGE_INSPECTORS_CATALOGUE_H

#include "inspectors/scan/scan.h"

extern const struct format catalogue_formats[];
extern const size_t catalogue_n;

/* Their databases, as scan_set_compile() made them. */
extern const struct scan_bytes catalogue_bytes;

#endif
