/* Whole seconds are read as everywhere else; what follows them is Azure's. */
#include "orchestrator/azure/when.h"

#include <string.h>

#include "core/base/clock.h"

#define WHOLE 19 /* bytes of "2026-11-17T19:00:00" */

/* ".1234567": up to nine digits, of which six count. False: there is no digit behind the dot, or too many. */
static bool take_fraction(struct slice *rest, uint64_t *us)
{
	uint64_t part = 0;
	size_t n = 0;
	*us = 0;
	if (!slice_starts(*rest, SLICE(".")))
		return true;
	*rest = slice_from(*rest, 1);
	while (n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9')
		n++;
	if (n == 0 || n > 9 || !slice_to_u64(slice_head(*rest, n < 6 ? n : 6), 999999, &part))
		return false;
	for (size_t i = n; i < 6; i++)
		part *= 10;
	*us = part;
	*rest = slice_from(*rest, n);
	return true;
}

bool when_parse(struct slice text, uint64_t *wall_us)
{
	char whole[WHOLE + 1];
	int64_t seconds;
	uint64_t part;
	if (text.len <= WHOLE)
		return false;
	memcpy(whole, text.ptr, WHOLE);
	whole[WHOLE] = 'Z';
	struct slice rest = slice_from(text, WHOLE);
	if (!clock_parse(slice_of(whole, sizeof(whole)), &seconds) || seconds < 0 || !take_fraction(&rest, &part) ||
	    (!slice_eq(rest, SLICE("Z")) && !slice_eq(rest, SLICE("+00:00"))))
		return false;
	*wall_us = (uint64_t)seconds * 1000000 + part;
	return true;
}

void when_format(uint64_t wall_us, char out[WHEN_TEXT])
{
	char text[CLOCK_TEXT];
	clock_format(wall_us, text);
	memcpy(out, text, WHOLE);
	memcpy(out + WHOLE, "Z", 2);
}
