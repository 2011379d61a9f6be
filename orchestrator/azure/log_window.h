/* The log of a container, of which Azure tells the last part only: 4 MB while it runs, 16 KB or 1000 lines when it has ended. Each
 * look is laid over the one before: what is new goes on, once, and what has fallen out in between is known.
 *
 * Lines carry the time at which they were written, to the nanosecond, so that a line that is written twice is two lines. Of the look
 * before, the hash of each line is kept. A last line that is not whole waits for the next look. */
#ifndef CAGE_AZURE_LOG_WINDOW_H
#define CAGE_AZURE_LOG_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/slice.h"

struct log_window {
	uint64_t *seen; /* owned: a hash of each line of the last look that had any, in their order */
	size_t n_seen;
	uint64_t gaps; /* times that lines were lost between two looks */
};

/* Called with each line that is new, without its time, with its line break. False: it could not be taken. */
typedef bool log_line(void *arg, struct slice line);

/* content: with timestamps. is_last: the container has ended, and what is there is all. False: no memory, or a line could not be taken; it and
 * what follows are told by the next look that has them. */
bool log_window_take(struct log_window *w, struct slice content, bool is_last, log_line *each, void *arg);

void log_window_free(struct log_window *w);

#endif
