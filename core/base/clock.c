/* Clock readings and the one time format that cage writes and reads. */
#include "core/base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int64_t clock_wall_s(void)
{
	return (int64_t)(clock_wall_us() / 1000000u);
}

uint64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

static void put_digits(char *out, unsigned value, size_t width)
{
	for (size_t i = width; i > 0; i--) {
		out[i - 1] = (char)('0' + value % 10);
		value /= 10;
	}
}

static void format_second(time_t sec, char out[CLOCK_TEXT])
{
	struct tm tm;
	gmtime_r(&sec, &tm);
	memcpy(out, "0000-00-00T00:00:00.000000Z", CLOCK_TEXT);
	put_digits(out, (unsigned)(tm.tm_year + 1900), 4);
	put_digits(out + 5, (unsigned)(tm.tm_mon + 1), 2);
	put_digits(out + 8, (unsigned)tm.tm_mday, 2);
	put_digits(out + 11, (unsigned)tm.tm_hour, 2);
	put_digits(out + 14, (unsigned)tm.tm_min, 2);
	put_digits(out + 17, (unsigned)tm.tm_sec, 2);
}

/* Many lines of a log are of one second, so the last one is kept. */
void clock_format(uint64_t wall_us, char out[CLOCK_TEXT])
{
	static _Thread_local char kept[CLOCK_TEXT];
	static _Thread_local time_t kept_sec = -1;
	time_t sec = (time_t)(wall_us / 1000000u);
	if (sec != kept_sec) {
		format_second(sec, kept);
		kept_sec = sec;
	}
	memcpy(out, kept, CLOCK_TEXT);
	put_digits(out + 20, (unsigned)(wall_us % 1000000u), 6);
}

static bool get_digits(struct slice text, size_t at, size_t width, int *out)
{
	uint64_t v;
	if (!slice_to_u64(slice_head(slice_from(text, at), width), 9999, &v))
		return false;
	*out = (int)v;
	return true;
}

bool clock_parse(struct slice text, int64_t *seconds)
{
	static const char shape[] = "0000-00-00T00:00:00Z";
	struct tm tm = {0};
	if (text.len != sizeof(shape) - 1)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (shape[i] != '0' && text.ptr[i] != shape[i])
			return false;
	if (!get_digits(text, 0, 4, &tm.tm_year) || !get_digits(text, 5, 2, &tm.tm_mon) ||
	    !get_digits(text, 8, 2, &tm.tm_mday) || !get_digits(text, 11, 2, &tm.tm_hour) ||
	    !get_digits(text, 14, 2, &tm.tm_min) || !get_digits(text, 17, 2, &tm.tm_sec))
		return false;
	struct tm asked = tm;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	time_t t = timegm(&tm);
	/* timegm repairs 31 February; we don't. */
	if (tm.tm_year != asked.tm_year - 1900 || tm.tm_mon != asked.tm_mon - 1 || tm.tm_mday != asked.tm_mday ||
	    tm.tm_hour != asked.tm_hour || tm.tm_min != asked.tm_min || tm.tm_sec != asked.tm_sec)
		return false;
	*seconds = (int64_t)t;
	return true;
}
