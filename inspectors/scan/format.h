/* A format: what a secret of one kind looks like. The catalogue is a table of them made from policies/catalogue.yaml
 * when cage is built; a policy adds its own. */
#ifndef CAGE_INSPECTORS_FORMAT_H
#define CAGE_INSPECTORS_FORMAT_H

#include "core/base/slice.h"

/* What the value itself must fulfil, beyond its shape. */
enum format_check {
	CHECK_NONE,
	CHECK_JWT,    /* three parts, the first of them a JSON object with "alg" */
	CHECK_CRC32,  /* the last six characters are the base62 CRC-32 of the rest behind the prefix (GitHub, npm) */
	CHECK_LUHN,   /* digits */
	CHECK_BASE64, /* decodes to the end */
	CHECK_COUNT
};

struct format {
	struct slice id;      /* "github-pat" */
	struct slice pattern; /* PCRE2 and Hyperscan both read it; group 1, when there is one, is the value */
	struct slice filter; /* what Hyperscan looks for, where the pattern would cost too much: ends inside every match
			       * of the pattern; empty: the pattern itself */
	unsigned max_len;    /* the most bytes that a match can have */
	bool caseless;
	bool worded; /* what Hyperscan looks for has a long word in it and little else, see near.h */
	bool assigned; /* begins with a name and goes on with an assignment, see assigned.h; Hyperscan does not look for it */
	bool generic;       /* told by the name that it is assigned to, whoever issued it */
	double min_entropy; /* bits per byte of the value; 0: any */
	enum format_check check;
	const struct slice *hosts; /* where it legitimately goes: "api.x.test", "*.x.test" */
	size_t n_hosts;
};

#endif
