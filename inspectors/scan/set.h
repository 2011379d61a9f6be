/* What the files of the scanner share about a set of formats. */
#ifndef CAGE_INSPECTORS_SCAN_SET_H
#define CAGE_INSPECTORS_SCAN_SET_H

#include <hs/hs.h>

#include "inspectors/scan/confirm.h"
#include "inspectors/scan/scan.h"

struct scan_set {
	const struct format *formats;
	size_t n;
	hs_database_t *databases[SCAN_PASSES]; /* NULL: no format for that pass */
	hs_scratch_t *scratch;                 /* of all its scans, since only one of them runs at a time */
	unsigned *next_same;     /* of each format: the next one that is found by the same means; n: none */
	unsigned first_assigned; /* n: none */
	struct confirm **exact;  /* of each format; NULL until its first candidate */
	size_t reach;            /* bytes that the longest match may have, with what it looks at around it */
};

/* NULL: no memory. Compiled at the first call for that format. */
struct confirm *scan_set_exact(const struct scan_set *set, size_t format);

#endif
