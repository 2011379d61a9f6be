/* What comes when. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/printable.h"
#include "core/base/say.h"
#include "core/base/utf8_letter.h"
#include "orchestrator/ship/ship.h"

/* ---- states ---- */

void ship_enter(struct ship *s, enum ship_state next)
{
	if (s->state != SHIP_ENDED)
		s->state = next;
	if (next == SHIP_FILLS)
		batch_clear(&s->batch);
}

void ship_end(struct ship *s, int code)
{
	const bool is_under_way = s->state == SHIP_SENDS && s->call.state == ARM_SENDS;
	if (code != 0)
		s->code = code;
	if (s->end_us == 0)
		s->end_us = clock_mono_us() + LIMIT_SHIP_END_MS * 1000ull;
	if (code != 0 || (!is_under_way && s->state != SHIP_STORES))
		ship_enter(s, SHIP_ENDED);
}

void ship_trouble(struct ship *s, const char *format, ...)
{
	const uint64_t now = clock_mono_us();
	char text[sizeof(s->error)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	make_printable(text, strlen(text));
	utf8_mend(text, strlen(text)); /* also a letter that the end has cut: the status is JSON */
	s->error_us = clock_wall_us();
	if (strcmp(text, s->error) == 0 && now < s->say_us)
		return;
	snprintf(s->error, sizeof(s->error), "%s", text);
	s->say_us = now + LIMIT_SHIP_SAY_MS * 1000ull;
	say("%s", text);
}

/* ---- filling ---- */

/* Where a batch is full the next one begins behind: a busy log is not the only one that is shipped. */
static bool fill(struct ship *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const size_t at = (s->next + i) % s->n;
		struct source *f = s->list[at];
		if (f->fd < 0 && f->size == f->reached.offset && !f->kept)
			continue;
		if (source_take(s, f) == TAKEN_FULL) {
			s->next = (at + 1) % s->n;
			return true;
		}
	}
	return false;
}

static bool has_moved(const struct ship *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (source_has_moved(s->list[i]))
			return true;
	return false;
}

/* Nothing is added to them, and all of it was taken. */
static void remove_kept(struct ship *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct source *f = s->list[i];
		if (!f->kept || !f->is_checked || source_has_moved(f) || f->place.offset != f->size)
			continue;
		if (unlink(f->kept) != 0 && errno != ENOENT)
			ship_trouble(s, "%s: is shipped, and can't be removed: %s", f->kept, strerror(errno));
		free(f->kept);
		f->kept = NULL;
	}
}

/* Who waits for the end is told what came of it: a file of which nothing could be shipped is no log. */
static void end_once(struct ship *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct source *f = s->list[i];
		if (f->passed == 0 || f->place.hash_at > 0)
			continue;
		s->code = 1;
		say("%s: is no decision log: all %llu of its lines were passed over", f->path,
		    (unsigned long long)f->passed);
	}
	say("%llu lines were shipped", (unsigned long long)s->counts.lines);
	ship_end(s, s->is_whole ? 0 : 1);
}

static void look_at_files(struct ship *s)
{
	const bool is_full = fill(s);
	const uint64_t due_us = s->batch.since_us + s->options->age_s * 1000000ull;
	remove_kept(s);
	if (s->batch.lines > 0 && (is_full || s->options->once || clock_mono_us() >= due_us))
		send_begin(s);
	else if (s->batch.lines == 0 && has_moved(s))
		ship_enter(s, SHIP_STORES);
	else if (s->batch.lines == 0 && s->options->once)
		end_once(s);
}

/* ---- storing ---- */

static bool store_all(struct ship *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct source *f = s->list[i];
		if (!source_has_moved(f))
			continue;
		if (!place_save(s, f))
			return false;
		f->place = f->reached;
	}
	return fsync(s->places) == 0;
}

/* As long as it can't be said what was taken, nothing more is sent: else it would come twice. */
static void store(struct ship *s)
{
	if (clock_mono_us() < s->again_us)
		return;
	if (store_all(s)) {
		ship_enter(s, SHIP_FILLS);
		return;
	}
	ship_trouble(s, "%s: what was shipped can't be written down: %s: nothing more is sent until it can", s->dir,
		     strerror(errno));
	s->again_us = clock_mono_us() + LIMIT_SHIP_STORE_MS * 1000ull;
	if (s->options->once)
		ship_end(s, 1);
}

/* ---- the loop ---- */

static void take_signals(struct ship *s)
{
	struct signalfd_siginfo info;
	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGUSR1)
			status_say(s);
		else
			ship_end(s, 0);
}

static void look(struct ship *s)
{
	switch (s->state) {
	case SHIP_FILLS:
		look_at_files(s);
		return;
	case SHIP_SENDS:
		send_look(s);
		return;
	case SHIP_RESTS:
		if (clock_mono_us() >= s->again_us)
			send_begin(s);
		return;
	case SHIP_STORES:
		store(s);
		return;
	case SHIP_ENDED:
		return;
	}
}

static void look_at_clocks(struct ship *s)
{
	const uint64_t now = clock_mono_us();
	if (s->state != SHIP_STORES &&
	    now >= s->scan_us) { /* also while nothing is taken: the lag grows, logs come and go */
		ship_scan(s);
		s->scan_us = now + LIMIT_SHIP_SCAN_MS * 1000ull;
	}
	if (now >= s->status_us) {
		status_write(s);
		s->status_us = now + LIMIT_SHIP_STATUS_MS * 1000ull;
	}
	if (s->end_us && (now >= s->end_us || s->state == SHIP_FILLS || s->state == SHIP_RESTS))
		ship_enter(s, SHIP_ENDED);
}

static int pause_ms(const struct ship *s, enum ship_state before)
{
	if (s->state != before)
		return 0;
	if (s->state == SHIP_SENDS)
		return arm_pause(&s->call, LIMIT_SHIP_LOOK_MS);
	return s->state == SHIP_FILLS ? LIMIT_SHIP_LOOK_MS : attempt_ms_until(s->again_us, LIMIT_SHIP_LOOK_MS);
}

void ship_loop(struct ship *s)
{
	int pause = 0;
	s->code = 0; /* until something is not taken */
	while (s->state != SHIP_ENDED) {
		struct pollfd at = {.fd = s->signals, .events = POLLIN};
		const enum ship_state before = s->state;
		web_wait(&s->arm.web, &at, 1, pause);
		if (at.revents)
			take_signals(s);
		look_at_clocks(s);
		look(s);
		pause = pause_ms(s, before);
	}
	status_write(s);
}
