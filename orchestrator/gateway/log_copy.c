/* The log goes to stdout too, as fast as that is read. How far that is stands in a file: who is started anew goes on there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/gateway/log_private.h"

#define PLACE_DIGITS 20

/* Where nothing is said of it, and where it can't be, nothing was copied: twice is better than never. */
bool log_find_copied(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH], digits[PLACE_DIGITS];
	log_path_in(l, "copied", path);
	l->place = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->place < 0) {
		say("%s: %s", path, strerror(errno));
		return false;
	}
	const ssize_t n = pread(l->place, digits, sizeof(digits), 0);
	if (n != (ssize_t)sizeof(digits) || !slice_to_u64(slice_of(digits, sizeof(digits)), UINT64_MAX, &l->copied) ||
	    l->copied > log_end(l))
		l->copied = 0;
	return true;
}

static void keep_place(const struct gateway_log *l)
{
	char digits[PLACE_DIGITS + 1];
	snprintf(digits, sizeof(digits), "%020llu", (unsigned long long)l->copied);
	if (pwrite(l->place, digits, PLACE_DIGITS, 0) != PLACE_DIGITS)
		say("%s/copied: %s", l->dir, strerror(errno));
}

/* Who reads stdout may be slow: what falls out of the files meanwhile is left out, and that is said. */
static void skip_lost(struct gateway_log *l)
{
	if (l->copied >= log_oldest(l))
		return;
	if (l->copied > 0)
		say("stdout is too slow: %llu bytes of the log are left out there",
		    (unsigned long long)(log_oldest(l) - l->copied));
	l->copied = log_oldest(l);
}

bool log_copy(struct gateway_log *l)
{
	static char piece[LIMIT_GATEWAY_COPY_PIECE];
	skip_lost(l);
	const uint64_t before = l->copied;
	for (unsigned i = 0; i < LIMIT_GATEWAY_COPY_PIECES; i++) {
		const size_t n = log_read_at(l, l->copied, piece, sizeof(piece));
		const ssize_t done = n > 0 ? write(1, piece, n) : 0;
		if (done <= 0)
			break;
		l->copied += (uint64_t)done;
	}
	if (l->copied != before)
		keep_place(l);
	return l->copied != before;
}

void log_finish(struct gateway_log *l)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_GATEWAY_COPY_END_MS * 1000ull;
	struct pollfd out = {.fd = 1, .events = POLLOUT};
	if (l->place < 0)
		return;
	log_look(l); /* it may be turning */
	while (l->copied < log_end(l) && clock_mono_us() < until_us) {
		poll(&out, 1, LIMIT_GATEWAY_TICK_MS);
		if (!log_copy(l) && out.revents)
			return; /* it takes none, or there is none to be had */
	}
}
