/* Numbers for people: the unit that fits, and no more digits than tell something. */
#include "orchestrator/client/format.h"

#include <stdio.h>

#include "core/base/clock.h"

bool parse_time(const char *time, int64_t *seconds)
{
	struct slice text = slice_str(time), whole = slice_cut(&text, '.');
	char shape[sizeof("2026-12-31T00:00:00Z")];
	if (whole.len == strlen(time)) /* no fraction */
		return clock_parse(whole, seconds);
	int n = snprintf(shape, sizeof(shape), "%.*sZ", (int)slice_head(whole, sizeof(shape)).len, whole.ptr);
	return n > 0 && (size_t)n < sizeof(shape) && slice_ends(text, SLICE("Z")) &&
	       clock_parse(slice_of(shape, (size_t)n), seconds);
}

const char *format_time(int64_t seconds, char out[FORMAT_TEXT])
{
	clock_format(seconds > 0 ? (uint64_t)seconds * 1000000 : 0, out);
	memcpy(out + sizeof("2026-12-31T00:00:00") - 1, "Z", 2);
	return out;
}

const char *format_age(const char *time, int64_t now_s, char out[FORMAT_TEXT])
{
	static const struct {
		int64_t from, unit;
		char name;
	} units[] = {{2 * 86400, 86400, 'd'}, {2 * 3600, 3600, 'h'}, {2 * 60, 60, 'm'}, {0, 1, 's'}};
	int64_t then;
	size_t i = 0;
	out[0] = '\0';
	if (!parse_time(time, &then))
		return out;
	int64_t age = now_s > then ? now_s - then : 0;
	while (age < units[i].from)
		i++;
	snprintf(out, FORMAT_TEXT, "%lld%c", (long long)(age / units[i].unit), units[i].name);
	return out;
}

const char *format_size(double bytes, char out[FORMAT_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;
	for (; bytes >= 1024 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		bytes /= 1024;
	snprintf(out, FORMAT_TEXT, i == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[i]);
	return out;
}

const char *format_seconds(double s, char out[FORMAT_TEXT])
{
	if (s < 60)
		snprintf(out, FORMAT_TEXT, s < 1 ? "%.3f s" : "%.1f s", s);
	else if (s < 2.0 * 3600)
		snprintf(out, FORMAT_TEXT, "%dm %02ds", (int)s / 60, (int)s % 60);
	else
		snprintf(out, FORMAT_TEXT, "%.1f h", s / 3600);
	return out;
}
