/* What diff can't show is written here: where links lead. It is told not to follow them, since they may lead to any file of
 * this machine, and then says nothing of those that are new. An agent has made what it reads, so it is bounded. */
#include "orchestrator/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/write_all.h"
#include "orchestrator/workspace.h"

#define DIFF "/usr/bin/diff"
#define PIECE KIB(64)

/* ---- running it ---- */

static _Noreturn void become(const char *const argv[], const char *dir, int out, rlim_t memory)
{
	char *const envp[] = {"LC_ALL=C", NULL};
	const struct rlimit limit = {memory, memory};
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	int null = open("/dev/null", O_RDWR);
	if (null >= 0 && setrlimit(RLIMIT_AS, &limit) == 0 && chdir(dir) == 0 && dup2(out, 1) == 1 &&
	    dup2(null, 0) == 0 && dup2(null, 2) == 2 && close_range(3, ~0u, 0) == 0)
		execve(argv[0], (char *const *)(const void *)argv, envp);
	_exit(127);
}

/* Is there something to read, or the end, before that time? */
static bool wait_for(int fd, uint64_t until_us)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	for (;;) {
		uint64_t now = clock_mono_us();
		if (now >= until_us)
			return false;
		int n = poll(&p, 1, (int)((until_us - now) / 1000 + 1));
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

/* True: all of it. */
static bool take(int from, int out, const struct diff_bounds *bounds)
{
	char piece[PIECE];
	uint64_t left = bounds->bytes, until = clock_mono_us() + 1000 * bounds->ms;
	while (wait_for(from, until)) {
		ssize_t n = read(from, piece, sizeof(piece));
		if (n == 0)
			return true;
		if (n < 0 && errno == EINTR)
			continue;
		bool fits = n > 0 && (uint64_t)n <= left;
		if (n < 0 || !write_all(out, piece, fits ? (size_t)n : (size_t)left) || !fits)
			return false;
		left -= (uint64_t)n;
	}
	return false;
}

static enum diff_end end_of(pid_t pid, bool is_whole)
{
	int status = 0;
	if (!is_whole)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_whole)
		return DIFF_CUT;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return DIFF_NONE;
	return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? DIFF_WHOLE : DIFF_TROUBLE;
}

enum diff_end diff_run(const char *const argv[], const char *dir, int out, const struct diff_bounds *bounds)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return DIFF_NONE;
	pid_t pid = fork();
	if (pid == 0)
		become(argv, dir, ends[1], bounds->memory);
	close(ends[1]);
	bool is_whole = pid > 0 && take(ends[0], out, bounds);
	close(ends[0]);
	return pid > 0 ? end_of(pid, is_whole) : DIFF_NONE;
}

/* ---- diff.patch ---- */

static int open_diff(const char *patch)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	snprintf(path, sizeof(path), "%s/diff.patch", patch);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Bytes that it may still get: links and files have one bound. None if that is not known. */
static uint64_t room_left(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size < (off_t)LIMIT_DIFF ? LIMIT_DIFF - (uint64_t)st.st_size : 0;
}

/* What is cut off leaves no room behind it, by which diff_add_files knows. */
static void add_line(int fd, const char *line, int len)
{
	uint64_t room = room_left(fd);
	if (len > 0)
		write_all(fd, line, (uint64_t)len < room ? (size_t)len : (size_t)room);
}

/* False: it is no link. */
static bool read_link(const char *patch, const char *kind, const char *path, char *shown)
{
	char name[2 * LIMIT_WORKSPACE_PATH + 16], target[LIMIT_WORKSPACE_PATH];
	snprintf(name, sizeof(name), "%s/%s/%s", patch, kind, path);
	ssize_t n = readlink(name, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	path_shown(target, shown);
	return true;
}

void diff_add_link(const char *patch, const char *path)
{
	char name[LIMIT_SHOWN_PATH], before[LIMIT_SHOWN_PATH], after[LIMIT_SHOWN_PATH], line[4 * LIMIT_SHOWN_PATH];
	bool was = read_link(patch, "base", path, before), is = read_link(patch, "files", path, after);
	int fd = was || is ? open_diff(patch) : -1;
	if (fd < 0)
		return;
	path_shown(path, name);
	int len;
	if (!was)
		len = snprintf(line, sizeof(line), "Link %s leads to %s\n", name, after);
	else if (!is)
		len = snprintf(line, sizeof(line), "Link %s is gone, it led to %s\n", name, before);
	else
		len = snprintf(line, sizeof(line), "Link %s leads to %s, it led to %s\n", name, after, before);
	add_line(fd, line, len);
	close(fd);
}

static const char *note(enum diff_end end)
{
	switch (end) {
	case DIFF_WHOLE:
		return NULL;
	case DIFF_CUT:
		return "The rest is left out here: it is too much. All changes are in base and files.\n";
	case DIFF_TROUBLE:
	case DIFF_NONE:
		break;
	}
	return "Some changes may be missing here. All of them are in base and files.\n";
}

void diff_add_files(const char *patch)
{
	const char *const argv[] = {DIFF, "-ruNa", "--no-dereference", "base", "files", NULL};
	int fd = open_diff(patch);
	if (fd < 0)
		return;
	const struct diff_bounds bounds = {room_left(fd), LIMIT_DIFF_MS, LIMIT_DIFF_RAM};
	const char *text = note(bounds.bytes > 0 ? diff_run(argv, patch, fd, &bounds) : DIFF_CUT);
	if (text)
		write_all(fd, text, strlen(text));
	close(fd);
}
