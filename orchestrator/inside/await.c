/* In a container that stands ready, before anything else: nothing runs and nothing listens until there is a whole text of what shall be
 * run (given.h). It is used once: who has it leaves a mark in a volume that outlives the container, becomes another program, and finds the
 * mark if it is started again. A file of another run is never written over. What is broken, late or in the way ends the container. */
#include "orchestrator/inside/await.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/write_all.h"
#include "orchestrator/inside/enter.h"
#include "orchestrator/inside/given.h"

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "cage-inside: %s: %s: nothing is run\n", what, why);
	return ENTER_REFUSED;
}

/* ---- waiting ---- */

static uint64_t now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec;
}

/* How much there is of it; what is too long is cut, and then not whole. */
static size_t read_text(const char *path, char *room, size_t size)
{
	size_t n = 0;
	ssize_t got = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (fd >= 0 && n < size && (got = read(fd, room + n, size - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	return n;
}

/* NULL: records are what there is; else why there is nothing. A directory that changes by itself, of whatever file system, is looked at
 * rather than listened to. */
static const char *wait_for(const char *path, struct slice *records)
{
	static char text[LIMIT_GIVEN + 1], bytes[LIMIT_GIVEN];
	const struct timespec moment = {.tv_nsec = LIMIT_AWAIT_LOOK_MS * 1000000L};
	const uint64_t until = now_s() + LIMIT_AWAIT_S;
	uint64_t whole_until = 0;
	while (now_s() < until && (!whole_until || now_s() < whole_until)) {
		const size_t n = read_text(path, text, sizeof(text));
		if (given_open(slice_of(text, n), bytes, sizeof(bytes), records))
			return given_is_good(*records) ? NULL : "it is not what it should be";
		if (n > 0 && !whole_until)
			whole_until = now_s() + LIMIT_AWAIT_WHOLE_S;
		nanosleep(&moment, NULL);
	}
	return whole_until ? "it was not whole in time" : "nobody has asked for this group in time";
}

/* ---- files ---- */

static bool write_new(const char *path, struct slice bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && write_all(fd, bytes.ptr, bytes.len);
	if (fd >= 0)
		ok = close(fd) == 0 && ok;
	return ok;
}

static bool is_there(const char *path, const struct given_record *r)
{
	static char found[LIMIT_GIVEN + 1];
	const size_t n = read_text(path, found, sizeof(found));
	return r->kind == GIVEN_KEY ? n == GIVEN_KEY_LEN : slice_eq(slice_of(found, n), r->bytes);
}

/* There as a whole or not at all. Another container of the group may write the same one: then the first is good for both. */
static bool make_file(const struct given_record *r)
{
	char path[LIMIT_GIVEN_PATH], part[LIMIT_GIVEN_PATH + 24], key[GIVEN_KEY_LEN];
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number) ||
	    getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return false;
	snprintf(path, sizeof(path), "%.*s", SLICE_FMT(r->path));
	snprintf(part, sizeof(part), "%s.%016llx", path, (unsigned long long)number);
	bool ok = write_new(part, r->kind == GIVEN_KEY ? slice_of(key, sizeof(key)) : r->bytes);
	if (ok && link(part, path) != 0) {
		ok = errno == EEXIST && is_there(path, r);
		errno = ok ? 0 : EEXIST;
	}
	const int why = errno;
	unlink(part);
	explicit_bzero(key, sizeof(key));
	errno = why;
	return ok;
}

/* ---- once ---- */

/* Before anything else is done with them. NULL, or why they are not used. */
static const char *mark_used(struct slice records)
{
	struct given_record r;
	char path[LIMIT_GIVEN_PATH] = "";
	while (given_next(&records, &r))
		if (r.kind == GIVEN_ONCE)
			snprintf(path, sizeof(path), "%.*s", SLICE_FMT(r.path));
	if (write_new(path, SLICE_NONE))
		return NULL;
	return errno == EEXIST ? "it was used before" : "that it is used can't be written down";
}

/* ---- becoming it ---- */

static size_t count_words(struct slice records)
{
	struct given_record r;
	size_t n = 0;
	while (given_next(&records, &r))
		n += r.kind == GIVEN_WORD;
	return n;
}

static bool take_variable(struct slice text)
{
	const size_t at = slice_find(text, '=');
	char *name = strndup(text.ptr, at), *value = strndup(text.ptr + at + 1, text.len - at - 1);
	const bool ok = name && value && setenv(name, value, 1) == 0;
	free(name);
	free(value);
	return ok;
}

/* False with errno. words: room for all of them. */
static bool take(struct slice records, char **words)
{
	struct given_record r;
	bool ok = true;
	while (ok && given_next(&records, &r)) {
		switch (r.kind) {
		case GIVEN_WORD:
			*words = strndup(r.bytes.ptr, r.bytes.len);
			ok = *words++ != NULL;
			break;
		case GIVEN_VARIABLE:
			ok = take_variable(r.bytes);
			break;
		case GIVEN_FILE:
		case GIVEN_KEY:
			ok = make_file(&r);
			break;
		case GIVEN_ONCE:
			break;
		}
	}
	return ok;
}

/* The first process of a container hears no signal that it does not ask for. */
static void leave(int number)
{
	_exit(128 + number);
}

/* The program and its own words, then those that were given. Comes back where that can't be. */
static int become(const char *path, char **own, size_t n_own, struct slice records)
{
	char **words = calloc(n_own + count_words(records) + 1, sizeof(*words));
	if (!words)
		return refuse(path, "no memory");
	memcpy(words, own, n_own * sizeof(*words));
	const bool is_taken = take(records, words + n_own);
	if (is_taken) {
		umask(022);
		execvp(words[0], words);
	}
	const int code = is_taken ? refuse(words[0], strerror(errno))
				  : refuse(path, errno == EEXIST ? "a file of another run is there" : strerror(errno));
	for (size_t i = n_own; words[i]; i++)
		free(words[i]);
	free(words);
	return code;
}

int await_given(int argc, char **argv)
{
	struct slice records;
	if (argc < 3 || strcmp(argv[1], "--") != 0) {
		fputs("usage: cage-inside --await FILE -- PROGRAM [ARGS]\n", stderr);
		return 2;
	}
	signal(SIGTERM, leave);
	umask(077);
	const char *why = wait_for(argv[0], &records);
	if (!why)
		why = mark_used(records);
	return why ? refuse(argv[0], why) : become(argv[0], argv + 2, (size_t)argc - 2, records);
}
