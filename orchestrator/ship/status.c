/* How far it is: a file for whoever watches, and a line for who asks by a signal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/write_all.h"
#include "orchestrator/ship/ship.h"

struct lag {
	uint64_t bytes, seconds;
};

/* The time of the first line that was not shipped. */
static uint64_t age_of(const struct source *f, int64_t now)
{
	static const struct slice head = WORD("{\"schema\":\"cage.log/1\",\"ts\":\"");
	char line[64];
	int64_t then;
	int fd = f->fd >= 0 ? f->fd : open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const ssize_t n = fd >= 0 ? pread(fd, line, head.len + 19, (off_t)f->place.offset) : -1;
	if (fd >= 0 && fd != f->fd)
		close(fd);
	if (n != (ssize_t)head.len + 19 || !slice_starts(slice_of(line, (size_t)n), head))
		return 0;
	line[n] = 'Z'; /* without its microseconds */
	return clock_parse(slice_of(line + head.len, 20), &then) && now > then ? (uint64_t)(now - then) : 0;
}

static struct lag lag_of(const struct ship *s)
{
	struct lag lag = {0};
	const int64_t now = clock_wall_s();
	for (size_t i = 0; i < s->n; i++) {
		const struct source *f = s->list[i];
		if (f->size <= f->place.offset)
			continue;
		const uint64_t age = age_of(f, now);
		lag.bytes += f->size - f->place.offset;
		lag.seconds = age > lag.seconds ? age : lag.seconds;
	}
	return lag;
}

static const char *state_name(enum ship_state state)
{
	static const char *const names[] = {[SHIP_FILLS] = "follows",
					    [SHIP_SENDS] = "sends",
					    [SHIP_RESTS] = "refused",
					    [SHIP_STORES] = "stores",
					    [SHIP_ENDED] = "ended"};
	return names[state];
}

static json_t *time_of(uint64_t us)
{
	char text[CLOCK_TEXT];
	if (us == 0)
		return json_null();
	clock_format(us, text);
	return json_stringn(text, sizeof(text));
}

static json_t *status_of(const struct ship *s)
{
	const struct ship_counts *c = &s->counts;
	const struct lag lag = lag_of(s);
	const char *error = s->error[0] ? s->error : NULL;
	return json_pack(
		"{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:I, s:I, s:o, s:o, s:s?}",
		"schema", "cage.ship/1", "at", time_of(clock_wall_us()), "state", state_name(s->state), "logs",
		(json_int_t)s->n, "lag_bytes", (json_int_t)lag.bytes, "lag_seconds", (json_int_t)lag.seconds, "lines",
		(json_int_t)c->lines, "bytes", (json_int_t)c->bytes, "batches", (json_int_t)c->batches, "retries",
		(json_int_t)c->retries, "refused", (json_int_t)c->refused, "skipped", "too_big", (json_int_t)c->too_big,
		"foreign", (json_int_t)c->foreign, "restarted", (json_int_t)c->restarted, "lost_bytes",
		(json_int_t)c->lost_bytes, "last_shipped", time_of(s->shipped_us), "last_error_at",
		time_of(s->error_us), "last_error", error);
}

static bool write_file(const char *path, const char *text)
{
	char beside[SHIP_PATH];
	if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
		return false;
	int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1);
	close(fd);
	return ok && rename(beside, path) == 0;
}

void status_write(struct ship *s)
{
	if (!s->options->status)
		return;
	json_t *status = status_of(s);
	char *text = status ? json_dumps(status, JSON_COMPACT) : NULL;
	if (!text || !write_file(s->options->status, text))
		say("%s: the state can't be written: %s", s->options->status, text ? strerror(errno) : "no memory");
	free(text);
	json_decref(status);
}

void status_say(const struct ship *s)
{
	const struct ship_counts *c = &s->counts;
	const struct lag lag = lag_of(s);
	const uint64_t skipped = c->too_big + c->foreign;
	say("%s: %llu lines of %zu logs shipped in %llu batches, %llu skipped; behind by %llu bytes, %llu s; last "
	    "trouble: %s",
	    state_name(s->state), (unsigned long long)c->lines, s->n, (unsigned long long)c->batches,
	    (unsigned long long)skipped, (unsigned long long)lag.bytes, (unsigned long long)lag.seconds,
	    s->error[0] ? s->error : "none");
}
