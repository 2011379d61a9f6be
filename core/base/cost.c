/* Prices as people write them, and what they come to. */
#include "core/base/cost.h"

#include <stdio.h>

#define DIGITS 12
#define ONE 1000000000000ull /* in 10^-12 */
#define MOST 999999

__extension__ typedef unsigned __int128 wide;

bool price_parse(struct slice text, uint64_t *out)
{
	uint64_t whole, part = 0;
	struct slice rest = text;
	const bool has_dot = slice_find(text, '.') != text.len;
	const struct slice digits = slice_cut(&rest, '.');
	if (!slice_to_u64(digits, MOST, &whole))
		return false;
	if (has_dot && (rest.len == 0 || rest.len > DIGITS || !slice_to_u64(rest, ONE, &part)))
		return false;
	for (size_t i = has_dot ? rest.len : DIGITS; i < DIGITS; i++)
		part *= 10;
	*out = whole * ONE + part;
	return true;
}

const char *price_expected(struct slice text)
{
	return slice_find(text, ',') == text.len
		       ? "expected a price such as 2 or 0.0000135"
		       : "expected a price such as 2 or 0.0000135, with a dot in the place of the comma";
}

void price_format(uint64_t price, char out[PRICE_TEXT])
{
	snprintf(out, PRICE_TEXT, "%llu.%012llu", (unsigned long long)(price / ONE) % (MOST + 1ull),
		 (unsigned long long)(price % ONE));
}

uint64_t cost_nano(const struct prices *p, uint64_t vcpu_us, uint64_t gb_us)
{
	const wide product = (wide)p->vcpu * vcpu_us + (wide)p->gb * gb_us; /* in 10^-18 */
	const wide nano = (product + 500000000) / 1000000000;
	return nano > UINT64_MAX ? UINT64_MAX : (uint64_t)nano;
}
