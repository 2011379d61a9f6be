/* Opening, reading back, and writing so that a regular file holds whole lines only. */
#include "core/audit/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"

static bool refuse(const char *path, const char *why)
{
	say("log %s: %s", path, why);
	return false;
}

static int open_path(const char *path)
{
	if (strcmp(path, "-") == 0)
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0640);
}

/* A file that was redirected to stdout belongs to whoever did that: it is a stream for us. */
static bool accept_kind(struct logfile *f, const char *path, const struct stat *st)
{
	bool is_stdout = strcmp(path, "-") == 0;
	if (is_stdout || S_ISCHR(st->st_mode)) {
		f->kind = LOGFILE_STREAM;
		return true;
	}
	if (!S_ISREG(st->st_mode))
		return refuse(path, "neither a regular file nor a device");
	if (flock(f->fd, LOCK_EX | LOCK_NB) != 0)
		return refuse(path, errno == EWOULDBLOCK ? "another process writes its log there" : strerror(errno));
	f->kind = LOGFILE_REGULAR;
	return true;
}

bool logfile_open(struct logfile *f, const char *path)
{
	struct stat st;
	*f = (struct logfile){.fd = open_path(path), .cut_at = -1};
	if (f->fd < 0)
		return refuse(path, errno == ELOOP ? "is a symbolic link" : strerror(errno));
	if (fstat(f->fd, &st) != 0 || !accept_kind(f, path, &st)) {
		close(f->fd);
		*f = (struct logfile){.fd = -1, .cut_at = -1};
		return false;
	}
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return true;
}

static bool cut(struct logfile *f, off_t at)
{
	f->cut_at = at;
	if (ftruncate(f->fd, at) != 0)
		return false;
	f->cut_at = -1;
	return true;
}

void logfile_close(struct logfile *f)
{
	if (f->cut_at >= 0)
		cut(f, f->cut_at);
	if (f->kind != LOGFILE_CLOSED)
		close(f->fd);
	*f = (struct logfile){.fd = -1, .cut_at = -1};
}

bool logfile_is_at(const struct logfile *f, const char *path)
{
	struct stat st;
	if (strcmp(path, "-") == 0)
		return true;
	return lstat(path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}

static bool read_all_at(int fd, char *buf, size_t len, off_t at)
{
	size_t have = 0;
	while (have < len) {
		ssize_t n = pread(fd, buf + have, len - have, at + (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

/* The last whole line in the end of the file; *whole gets how many bytes of `end` are whole lines. Empty when there is
 * none, or when its start is not in there. */
static struct slice last_line(struct slice end, bool is_all, size_t *whole)
{
	size_t newline = slice_rfind(end, '\n');
	*whole = newline == end.len ? 0 : newline + 1;
	struct slice before = slice_head(end, newline == end.len ? 0 : newline);
	size_t start = slice_rfind(before, '\n');
	if (start == before.len)
		return is_all ? before : SLICE_NONE;
	return slice_from(before, start + 1);
}

bool logfile_read_end(struct logfile *f, const char *path, struct audit_hasher *h, struct audit_chain *end, bool *empty)
{
	*empty = f->kind == LOGFILE_STREAM;
	if (*empty)
		return true;
	off_t size = lseek(f->fd, 0, SEEK_END);
	size_t n = size < (off_t)(2 * AUDIT_LINE_MAX) ? (size_t)size : 2 * AUDIT_LINE_MAX, whole;
	char *buf = malloc(n + 1);
	bool good = size >= 0 && buf && read_all_at(f->fd, buf, n, size - (off_t)n);
	if (!good) {
		free(buf);
		return refuse(path, "can't be read back");
	}
	struct slice line = last_line(slice_of(buf, n), (off_t)n == size, &whole);
	*empty = (off_t)n == size && whole == 0;
	if (*empty)
		good = audit_chain_is_torn_line(slice_of(buf, n));
	else
		good = audit_chain_read(h, line, end);
	free(buf);
	if (!good)
		return refuse(path, "its last line is not a line of this log, or was changed: move the file away "
				    "and keep it; cage then starts a new one");
	if (whole < n && !cut(f, size - (off_t)(n - whole)))
		return refuse(path, "its torn last line can't be cut off");
	return true;
}

/* As much as goes at once. A pipe that is ready takes PIPE_BUF bytes without blocking, whoever else shares it. */
static ssize_t write_some(struct logfile *f, struct slice s)
{
	struct pollfd p = {.fd = f->fd, .events = POLLOUT};
	if (f->kind == LOGFILE_REGULAR)
		return write(f->fd, s.ptr, s.len);
	int ready = poll(&p, 1, LIMIT_LOG_RETRY_MS);
	if (ready == 0)
		errno = EAGAIN;
	return ready > 0 ? write(f->fd, s.ptr, s.len < PIPE_BUF ? s.len : PIPE_BUF) : -1;
}

/* Takes back the first part of a batch. The offset is where the write ended, whatever others did to the file before. */
static void take_back(struct logfile *f, size_t *sent)
{
	int why = errno;
	off_t end = lseek(f->fd, 0, SEEK_CUR);
	if (*sent > 0 && end >= (off_t)*sent)
		cut(f, end - (off_t)*sent);
	*sent = 0;
	errno = why;
}

enum cage_status logfile_write(struct logfile *f, struct slice buf, size_t *sent)
{
	if (f->cut_at >= 0 && !cut(f, f->cut_at))
		return CAGE_ESYS;
	while (*sent < buf.len) {
		ssize_t n = write_some(f, slice_from(buf, *sent));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? ENOSPC : errno;
			if (f->kind == LOGFILE_REGULAR)
				take_back(f, sent);
			return CAGE_ESYS;
		}
		*sent += (size_t)n;
	}
	return CAGE_OK;
}

uint64_t logfile_size(const struct logfile *f)
{
	struct stat st;
	if (f->kind != LOGFILE_REGULAR || fstat(f->fd, &st) != 0)
		return 0;
	return (uint64_t)st.st_size;
}

enum cage_status logfile_sync(struct logfile *f)
{
	return f->kind != LOGFILE_REGULAR || fdatasync(f->fd) == 0 ? CAGE_OK : CAGE_ESYS;
}
