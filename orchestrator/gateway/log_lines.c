/* Reading of the log: bytes from a place on, and the lines of one sandbox among them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/gateway/log_private.h"

uint64_t log_oldest(const struct gateway_log *l)
{
	return l->n_old > 0 ? l->old[0].base : l->base;
}

void log_cursor(const struct gateway_log *l, uint64_t at, char out[LOG_CURSOR])
{
	snprintf(out, LOG_CURSOR, "%s-%llu", l->instance, (unsigned long long)at);
}

size_t log_read_at(const struct gateway_log *l, uint64_t at, char *out, size_t room)
{
	char path[LIMIT_GATEWAY_PATH];
	ssize_t n = 0;
	if (at >= l->base) {
		n = l->live >= 0 ? pread(l->live, out, room, (off_t)(at - l->base)) : 0;
		return n > 0 ? (size_t)n : 0;
	}
	for (size_t i = 0; i < l->n_old; i++) {
		if (at < l->old[i].base || at >= l->old[i].base + l->old[i].size)
			continue;
		log_old_path(l, l->old[i].base, path);
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		n = fd >= 0 ? pread(fd, out, room, (off_t)(at - l->old[i].base)) : 0;
		if (fd >= 0)
			close(fd);
	}
	return n > 0 ? (size_t)n : 0;
}

/* Text of a line has no quote in it that is not escaped: this can be nothing but the key. */
static bool is_of(struct slice line, struct slice key)
{
	return memmem(line.ptr, line.len, key.ptr, key.len) != NULL;
}

/* Whole lines of a piece; how many bytes they have. */
static size_t take_lines(struct slice piece, struct slice key, struct text *out)
{
	size_t used = 0;
	while (used < piece.len) {
		struct slice rest = slice_from(piece, used);
		const size_t end = slice_find(rest, '\n');
		if (end == rest.len)
			break;
		struct slice line = slice_head(rest, end + 1);
		if (is_of(line, key) && line.len > out->room - out->len)
			break;
		if (is_of(line, key))
			text_put(out, line);
		used += line.len;
	}
	return used;
}

/* One piece of it; false: there is nothing more to be had now. *has_more: since there is no room for it. */
static bool scan(struct gateway_log *l, struct slice key, uint64_t *at, struct text *out, bool *has_more)
{
	static char piece[LIMIT_GATEWAY_LOG_PIECE];
	const size_t n = log_read_at(l, *at, piece, sizeof(piece));
	const struct slice got = slice_of(piece, n);
	const size_t used = take_lines(got, key, out);
	const bool has_line = slice_find(got, '\n') < n;
	/* a line that is too long, or that has no end in a file which nobody writes to */
	const bool is_left_out = !has_line && n > 0 && (n == sizeof(piece) || *at < l->base);
	*at += is_left_out ? n : used;
	*has_more = used == 0 && has_line;
	return used > 0 || is_left_out;
}

struct log_told log_lines(struct gateway_log *l, struct slice sandbox, uint64_t *at, struct text *out)
{
	char room[LIMIT_SANDBOX + 16];
	struct text key = text_in(room, sizeof(room));
	struct log_told told = {.is_lost = *at < log_oldest(l)};
	if (told.is_lost)
		*at = log_oldest(l);
	const uint64_t first = *at;
	text_put(&key, SLICE("\"sandbox\":\""));
	text_put(&key, sandbox);
	text_put_char(&key, '"');
	while (scan(l, text_slice(&key), at, out, &told.has_more))
		if (*at - first >= LIMIT_GATEWAY_LOG_SCAN) {
			told.has_more = true;
			break;
		}
	return told;
}
