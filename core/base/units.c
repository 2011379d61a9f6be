/* Sizes and times: a number and its unit, with nothing between them. */
#include "core/base/units.h"

static const struct {
	struct slice suffix;
	unsigned shift;
} sizes[] = {{WORD("KiB"), 10}, {WORD("MiB"), 20}, {WORD("GiB"), 30}, {WORD("B"), 0}, {WORD(""), 0}};

bool units_size(struct slice text, uint64_t *bytes)
{
	size_t i = 0;
	while (!slice_ends(text, sizes[i].suffix))
		i++;
	struct slice digits = slice_head(text, text.len - sizes[i].suffix.len);
	uint64_t n;
	if (!slice_to_u64(digits, UINT64_MAX >> sizes[i].shift, &n))
		return false;
	*bytes = n << sizes[i].shift;
	return true;
}

uint64_t units_period(struct slice name)
{
	static const struct {
		struct slice name;
		uint64_t seconds;
	} periods[] = {{WORD("s"), 1}, {WORD("m"), 60}, {WORD("h"), 3600}, {WORD("d"), 86400}};
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++)
		if (slice_eq(name, periods[i].name))
			return periods[i].seconds;
	return 0;
}

bool units_duration(struct slice text, uint64_t max_s, uint64_t *seconds)
{
	uint64_t n, period = text.len > 0 ? units_period(slice_from(text, text.len - 1)) : 0;
	if (period == 0 || !slice_to_u64(slice_head(text, text.len - 1), max_s / period, &n) || n == 0)
		return false;
	*seconds = n * period;
	return true;
}
