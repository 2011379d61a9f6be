/* Copying between files and pipes, a piece at a time. */
#include "orchestrator/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool write_all(int fd, const char *bytes, size_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);
		if (done < 0 && errno == EAGAIN)
			poll(&p, 1, -1);
		else if (done < 0 && errno != EINTR)
			return false;
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		}
	}
	return true;
}

/* ---- the pipes ---- */

static bool is_file(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

static bool are_same(int a, int b)
{
	struct stat sa, sb;
	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static bool open_pipe(struct streams *s, int fd)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	s->ours[fd] = ends[fd == 0];
	s->theirs[fd] = ends[fd != 0];
	return fcntl(s->ours[fd], F_SETFL, O_NONBLOCK) == 0;
}

/* What goes to the same file stays in its order. */
static bool open_one(struct streams *s, int fd)
{
	if (fd == 2 && s->theirs[1] >= 0 && are_same(1, 2)) {
		s->theirs[2] = fcntl(s->theirs[1], F_DUPFD_CLOEXEC, 3);
		return s->theirs[2] >= 0;
	}
	return !is_file(fd) || open_pipe(s, fd);
}

bool streams_open(struct streams *s)
{
	*s = (struct streams){.ours = {-1, -1, -1}, .theirs = {-1, -1, -1}};
	for (int fd = 0; fd < 3; fd++)
		if (!open_one(s, fd)) {
			say("pipe: %s", strerror(errno));
			return false;
		}
	return true;
}

void streams_enter(const struct streams *s)
{
	for (int fd = 0; fd < 3; fd++)
		if (s->theirs[fd] >= 0 && dup2(s->theirs[fd], fd) < 0) {
			say("CMD can't have its files: %s", strerror(errno));
			_exit(1);
		}
}

void streams_begin(struct streams *s)
{
	for (int fd = 0; fd < 3; fd++)
		close_end(&s->theirs[fd]);
}

/* ---- what passes ---- */

short streams_events(int fd)
{
	return fd == 0 ? POLLOUT : POLLIN;
}

/* Of a file that can't be read, CMD sees the end. */
static void feed(struct streams *s)
{
	if (s->n_left == 0) {
		ssize_t got = read(0, s->left, sizeof(s->left));
		if (got < 0 && errno == EINTR)
			return;
		if (got < 0)
			say("stdin: %s", strerror(errno));
		s->n_left = got > 0 ? (size_t)got : 0;
	}
	ssize_t n = s->n_left > 0 ? write(s->ours[0], s->left, s->n_left) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_end(&s->ours[0]);
		return;
	}
	s->n_left -= (size_t)n;
	memmove(s->left, s->left + n, s->n_left);
}

/* The bytes that were passed on; 0: none are there. */
static size_t take(struct streams *s, int fd)
{
	char buf[LIMIT_STREAM];
	ssize_t n = read(s->ours[fd], buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0 && write_all(fd, buf, (size_t)n))
		return (size_t)n;
	if (n > 0) { /* who goes on writing is told by a signal, as of any pipe */
		say("%s: %s", fd == 1 ? "stdout" : "stderr", strerror(errno));
		s->failed = true;
	}
	close_end(&s->ours[fd]);
	return 0;
}

void streams_pass(struct streams *s, int fd)
{
	if (fd == 0)
		feed(s);
	else
		take(s, fd);
}

/* No more than was in the pipe: somebody may still be writing. */
static void take_last(struct streams *s, int fd)
{
	int room = s->ours[fd] >= 0 ? fcntl(s->ours[fd], F_GETPIPE_SZ) : 0;
	size_t passed = 0, n = 1;
	while (s->ours[fd] >= 0 && n > 0 && room > 0 && passed < (size_t)room) {
		n = take(s, fd);
		passed += n;
	}
}

void streams_close(struct streams *s)
{
	take_last(s, 1);
	take_last(s, 2);
	streams_begin(s);
	for (int fd = 0; fd < 3; fd++)
		close_end(&s->ours[fd]);
}
