/* The formats that are built in, as a set. */
#include "inspectors/scan/catalogue.h"

const struct scan_set *scan_catalogue(void)
{
	static struct scan_set *set; /* of the process, to its end */
	if (!set)
		set = scan_set_load(catalogue_formats, catalogue_n, &catalogue_bytes);
	return set;
}

const struct format *scan_catalogue_formats(size_t *n)
{
	*n = catalogue_n;
	return catalogue_formats;
}
