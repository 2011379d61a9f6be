/* Limits as they are written. */
#include <string.h>

#include "core/base/limits.h"
#include "orchestrator/gate/room_limits.h"
#include "orchestrator/gate/say.h"

#define LARGEST ((uint64_t)1 << 50)

int room_limits_number(const char *text, size_t len, uint64_t *out)
{
	uint64_t n = 0;
	if (len == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || n > LARGEST / 10)
			return -1;
		n = n * 10 + (uint64_t)(text[i] - '0');
	}
	*out = n;
	return 0;
}

/* A number with one letter of units behind it, or none, which is the first of them. */
static int number_of(const char *text, size_t len, const char *units, const uint64_t *factors, uint64_t *out)
{
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	uint64_t factor = unit && *unit ? factors[unit - units] : 1;
	if (room_limits_number(text, len - (unit && *unit ? 1 : 0), out) < 0 || *out > LARGEST / factor)
		return -1;
	*out *= factor;
	return 0;
}

int room_limits_size(const char *text, size_t len, uint64_t *out)
{
	static const uint64_t factors[] = {1 << 10, 1 << 20, 1 << 30};
	return number_of(text, len, "KMG", factors, out);
}

static int parse_time(const char *text, size_t len, uint64_t *out)
{
	static const uint64_t factors[] = {1, 60, 3600};
	return number_of(text, len, "smh", factors, out);
}

/* 2 or 1.5 as thousandths. */
static int parse_cpu(const char *text, size_t len, uint64_t *out)
{
	const char *dot = memchr(text, '.', len);
	const size_t whole = dot ? (size_t)(dot - text) : len;
	uint64_t fraction = 0;
	if (room_limits_number(text, whole, out) < 0 || *out > 1000000)
		return -1;
	if (dot && (len - whole - 1 > 3 || room_limits_number(dot + 1, len - whole - 1, &fraction) < 0))
		return -1;
	for (size_t digits = dot ? len - whole - 1 : 3; digits < 3; digits++)
		fraction *= 10;
	*out = *out * 1000 + fraction;
	return 0;
}

static int parse_one(struct room_limits *out, const char *text, size_t len)
{
	const struct {
		const char *name;
		int (*parse)(const char *, size_t, uint64_t *);
		uint64_t *field;
	} rows[] = {{"mem=", room_limits_size, &out->mem},     {"cpu=", parse_cpu, &out->cpu},
		    {"pids=", room_limits_number, &out->pids}, {"files=", room_limits_number, &out->files},
		    {"fsize=", room_limits_size, &out->fsize}, {"time=", parse_time, &out->seconds}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t n = strlen(rows[i].name);
		if (len > n && memcmp(text, rows[i].name, n) == 0)
			return rows[i].parse(text + n, len - n, rows[i].field) == 0 && *rows[i].field ? 0 : -1;
	}
	return -1;
}

int room_limits_parse(struct room_limits *out, const char *text)
{
	while (*text) {
		const size_t len = strcspn(text, ",");
		if (parse_one(out, text, len) < 0) {
			say("--limit: %.*s: expected mem=, fsize= with a size such as 2G, cpu=1.5, pids=, files= with "
			    "a number, time=10m",
			    (int)len, text);
			return -1;
		}
		if (out->pids > 0 && out->pids < LIMIT_ROOM_LEAST_PIDS) {
			say("--limit: %.*s: a room needs some itself: at least pids=%d", (int)len, text,
			    LIMIT_ROOM_LEAST_PIDS);
			return -1;
		}
		text += len + (text[len] == ',');
	}
	return 0;
}
