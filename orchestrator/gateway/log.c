/* Files of the log, by their places. */
#include "orchestrator/gateway/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/write_all.h"

#define LIVE "decisions.jsonl"
#define OLD "log-%020llu.jsonl"
#define OLD_LENGTH 30
#define PLACE_DIGITS 20

static void path_in(const struct gateway_log *l, const char *name, char out[LIMIT_GATEWAY_PATH])
{
	snprintf(out, LIMIT_GATEWAY_PATH, "%s/%s", l->dir, name);
}

static void old_path(const struct gateway_log *l, uint64_t base, char out[LIMIT_GATEWAY_PATH])
{
	char name[48];
	snprintf(name, sizeof(name), OLD, (unsigned long long)base);
	path_in(l, name, out);
}

void log_path(const struct gateway_log *l, char out[LIMIT_GATEWAY_PATH])
{
	path_in(l, LIVE, out);
}

static uint64_t size_of(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t log_end(const struct gateway_log *l)
{
	return l->base + size_of(l->live);
}

/* ---- what is there ---- */

static bool make_instance(struct gateway_log *l, const char *path)
{
	unsigned char bytes[LOG_INSTANCE / 2];
	struct text t = text_in(l->instance, LOG_INSTANCE);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && RAND_bytes(bytes, sizeof(bytes)) == 1;
	text_put_hex(&t, bytes, ok ? sizeof(bytes) : 0);
	ok = ok && write_all(fd, l->instance, LOG_INSTANCE);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool find_instance(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH];
	path_in(l, "instance", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT && make_instance(l, path);
	bool ok = read(fd, l->instance, LOG_INSTANCE) == LOG_INSTANCE && size_of(fd) == LOG_INSTANCE;
	close(fd);
	errno = EINVAL;
	return ok;
}

static int is_old(const struct dirent *d)
{
	return strncmp(d->d_name, "log-", 4) == 0 && strlen(d->d_name) == OLD_LENGTH;
}

static void drop_oldest(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH];
	old_path(l, l->old[0].base, path);
	if (unlink(path) != 0 && errno != ENOENT)
		say("%s: %s", path, strerror(errno));
	l->n_old--;
	memmove(&l->old[0], &l->old[1], l->n_old * sizeof(l->old[0]));
}

static void add_old(struct gateway_log *l, uint64_t base, uint64_t size)
{
	while (l->n_old > 0 && l->n_old >= l->most_old)
		drop_oldest(l);
	l->old[l->n_old].base = base;
	l->old[l->n_old++].size = size;
	l->base = base + size;
}

static bool find_old(struct gateway_log *l)
{
	struct dirent **names = NULL;
	const int n = scandir(l->dir, &names, is_old, alphasort);
	for (int i = 0; i < n; i++) {
		char path[LIMIT_GATEWAY_PATH];
		struct stat st;
		path_in(l, names[i]->d_name, path);
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			add_old(l, strtoull(names[i]->d_name + 4, NULL, 10), (uint64_t)st.st_size);
		free(names[i]);
	}
	free(names);
	return n >= 0;
}

static bool open_live(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH];
	log_path(l, path);
	l->live = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (l->live >= 0)
		l->state = LOG_LIVE;
	return l->live >= 0;
}

/* Where nothing is said of it, and where it can't be, nothing was copied: twice is better than never. */
static bool find_place(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH], digits[PLACE_DIGITS];
	path_in(l, "copied", path);
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

bool log_open(struct gateway_log *l, const char *dir, uint64_t most_bytes, size_t most_old)
{
	*l = (struct gateway_log){.live = -1, .place = -1, .most_bytes = most_bytes, .most_old = most_old};
	snprintf(l->dir, sizeof(l->dir), "%s", dir);
	if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || !find_instance(l) || !find_old(l)) {
		say("%s: %s", dir, strerror(errno));
		return false;
	}
	open_live(l);
	const int flags = fcntl(1, F_GETFL);
	return find_place(l) && flags >= 0 && fcntl(1, F_SETFL, flags | O_NONBLOCK) == 0;
}

void log_close(struct gateway_log *l)
{
	if (l->live >= 0)
		close(l->live);
	l->live = -1;
	if (l->place >= 0)
		close(l->place);
	l->place = -1;
}

/* ---- reading ---- */

static uint64_t oldest(const struct gateway_log *l)
{
	return l->n_old > 0 ? l->old[0].base : l->base;
}

void log_cursor(const struct gateway_log *l, uint64_t at, char out[LOG_CURSOR])
{
	snprintf(out, LOG_CURSOR, "%s-%llu", l->instance, (unsigned long long)at);
}

/* Bytes from a place on, of one file; 0: there are none. */
static size_t read_at(const struct gateway_log *l, uint64_t at, char *out, size_t room)
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
		old_path(l, l->old[i].base, path);
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
	const size_t n = read_at(l, *at, piece, sizeof(piece));
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
	struct log_told told = {.is_lost = *at < oldest(l)};
	if (told.is_lost)
		*at = oldest(l);
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

/* ---- turning and copying ---- */

static void turn(struct gateway_log *l)
{
	char from[LIMIT_GATEWAY_PATH], to[LIMIT_GATEWAY_PATH];
	log_path(l, from);
	old_path(l, l->base, to);
	if (rename(from, to) == 0)
		l->state = LOG_TURNING;
	else
		say("%s: %s", to, strerror(errno));
}

/* The proxy has begun a new one, and writes no more to the old. */
static void take_new(struct gateway_log *l)
{
	char path[LIMIT_GATEWAY_PATH];
	struct stat st;
	log_path(l, path);
	if (lstat(path, &st) != 0)
		return;
	const uint64_t size = size_of(l->live);
	close(l->live);
	l->live = -1;
	l->state = LOG_ABSENT;
	add_old(l, l->base, size);
	open_live(l);
}

/* Who reads stdout may be slow: what falls out of the files meanwhile is left out, and that is said. */
static void skip_lost(struct gateway_log *l)
{
	if (l->copied >= oldest(l))
		return;
	if (l->copied > 0)
		say("stdout is too slow: %llu bytes of the log are left out there",
		    (unsigned long long)(oldest(l) - l->copied));
	l->copied = oldest(l);
}

/* True: it went on. */
static bool copy_some(struct gateway_log *l)
{
	static char piece[LIMIT_GATEWAY_COPY_PIECE];
	skip_lost(l);
	const uint64_t before = l->copied;
	for (unsigned i = 0; i < LIMIT_GATEWAY_COPY_PIECES; i++) {
		const size_t n = read_at(l, l->copied, piece, sizeof(piece));
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
		if (!copy_some(l) && out.revents)
			return; /* it takes none, or there is none to be had */
	}
}

bool log_look(struct gateway_log *l)
{
	const enum log_state before = l->state;
	switch (l->state) {
	case LOG_ABSENT:
		open_live(l);
		break;
	case LOG_LIVE:
		if (size_of(l->live) >= l->most_bytes)
			turn(l);
		break;
	case LOG_TURNING:
		take_new(l);
		break;
	}
	copy_some(l);
	return before == LOG_LIVE && l->state == LOG_TURNING;
}
