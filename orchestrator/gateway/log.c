/* Files of the log, by their places. */
#include "orchestrator/gateway/log_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"

#define LIVE "decisions.jsonl"
#define OLD "log-%020llu.jsonl"
#define OLD_LENGTH 30

void log_path_in(const struct gateway_log *l, const char *name, char out[LIMIT_GATEWAY_PATH])
{
	snprintf(out, LIMIT_GATEWAY_PATH, "%s/%s", l->dir, name);
}

void log_old_path(const struct gateway_log *l, uint64_t base, char out[LIMIT_GATEWAY_PATH])
{
	char name[48];
	snprintf(name, sizeof(name), OLD, (unsigned long long)base);
	log_path_in(l, name, out);
}

void log_path(const struct gateway_log *l, char out[LIMIT_GATEWAY_PATH])
{
	log_path_in(l, LIVE, out);
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
	log_path_in(l, "instance", path);
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
	log_old_path(l, l->old[0].base, path);
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
		log_path_in(l, names[i]->d_name, path);
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
	return log_find_copied(l) && flags >= 0 && fcntl(1, F_SETFL, flags | O_NONBLOCK) == 0;
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

/* ---- turning ---- */

static void turn(struct gateway_log *l)
{
	char from[LIMIT_GATEWAY_PATH], to[LIMIT_GATEWAY_PATH];
	log_path(l, from);
	log_old_path(l, l->base, to);
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
	log_copy(l);
	return before == LOG_LIVE && l->state == LOG_TURNING;
}
