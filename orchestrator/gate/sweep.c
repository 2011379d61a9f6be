/* Processes are found by their parents, in /proc. A child stays in that list, alive or not, until we reap it, and all below
 * it lose their own parents to us: so when one look over all processes has found no child, nobody is left.
 *
 * /proc may hide processes (hidepid), such as those that want no core dump: our children are asked for by their own list
 * too, which hides none, and where it is not to be had, nobody is taken for gone.
 *
 * Those below our children are killed at the same time, as a tree that goes on forking would grow behind us. A number may
 * have become somebody else's by then, so they are held by a descriptor, and looked at again. */
#include "orchestrator/gate/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/next_name.h"

enum { BETWEEN_PARENT_AND_BEGIN = 17 };

struct process {
	pid_t parent;
	uint64_t began; /* in ticks since the machine began */
};

/* Those that were found by one look: more of them only come a look later. */
struct known {
	pid_t all[LIMIT_SWEPT];
	size_t n;
};

struct spared {
	const pid_t *all;
	size_t n;
};

static uint64_t room_began; /* ticks; what is older is not the room's */
static struct known elders; /* children that we had then and could not look at */

/* The kernel's list of our children: "17 18 ". False: it has none to read. One that is full may not be all of it. */
static bool read_children(struct known *out)
{
	int pid = 0;
	char path[64];
	out->n = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *list = fopen(path, "re");
	if (!list)
		return false;
	while (out->n < LIMIT_SWEPT && fscanf(list, "%d", &pid) == 1) // NOLINT(cert-err34-c)
		out->all[out->n++] = pid;
	fclose(list);
	return true;
}

/* "17 (name) S 1 ...": the name may have anything in it, so it is read from its end. */
static bool parse(const char *text, struct process *out)
{
	const char *at = strrchr(text, ')');
	char *end = NULL;
	if (!at || strlen(at) < sizeof(") S 1"))
		return false;
	out->parent = (pid_t)strtol(at + sizeof(") S"), &end, 10);
	for (int i = 0; i < BETWEEN_PARENT_AND_BEGIN && end; i++)
		end = *end == ' ' ? strpbrk(end + 1, " \n") : NULL;
	if (!end)
		return false;
	out->began = strtoull(end + strspn(end, " "), NULL, 10);
	return true;
}

static bool read_process(pid_t pid, struct process *out)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse(text, out);
}

/* False: there are more than can be told from the room's. */
static bool find_elders(void)
{
	struct process p;
	size_t hidden = 0;
	if (read_children(&elders) && elders.n == LIMIT_SWEPT)
		return false;
	for (size_t i = 0; i < elders.n; i++)
		if (!read_process(elders.all[i], &p))
			elders.all[hidden++] = elders.all[i];
	elders.n = hidden;
	return true;
}

int sweep_begin(void)
{
	if (!find_elders()) {
		errno = E2BIG;
		return -1;
	}
	struct timespec now;
	const uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	if (clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return -1;
	room_began = (uint64_t)now.tv_sec * ticks + (uint64_t)now.tv_nsec * ticks / 1000000000u;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static bool is_among(pid_t pid, const pid_t *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i] == pid)
			return true;
	return false;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, WNOHANG);
}

static void end_below(pid_t pid, pid_t parent)
{
	struct process again;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return;
	if (read_process(pid, &again) && again.parent == parent)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	close(fd);
}

/* Whether it was one to be ended. */
static bool meet(pid_t pid, struct known *known, const struct spared *spared)
{
	struct process p;
	if (!read_process(pid, &p))
		return false;
	const bool is_child = p.parent == getpid();
	if (is_child ? p.began < room_began || is_among(pid, spared->all, spared->n)
		     : !is_among(p.parent, known->all, known->n))
		return false;
	if (known->n < LIMIT_SWEPT)
		known->all[known->n++] = pid;
	if (is_child)
		end_child(pid);
	else
		end_below(pid, p.parent);
	return true;
}

static bool is_child(pid_t pid)
{
	siginfo_t info;
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Children that can't be looked at: whether there was one to be ended, or may be. How old they are is not to be seen either. */
static bool end_hidden(const struct spared *spared)
{
	static struct known children;
	struct process p;
	if (!read_children(&children))
		return !read_process(1, &p); /* a /proc that hides nobody has that one */
	bool found = children.n == LIMIT_SWEPT;
	for (size_t i = 0; i < children.n; i++) {
		const pid_t pid = children.all[i];
		if (is_among(pid, spared->all, spared->n) || is_among(pid, elders.all, elders.n) ||
		    read_process(pid, &p) || !is_child(pid))
			continue;
		found = true;
		end_child(pid);
	}
	return found;
}

/* All processes, in the order of their numbers. Who can't look has found somebody. */
static bool look(const struct spared *spared)
{
	static struct known known;
	bool found = false;
	DIR *all = opendir("/proc");
	if (!all)
		return true;
	known.n = 0;
	for (struct dirent *e = next_name(all); e; e = next_name(all)) {
		const pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 0 && meet(pid, &known, spared))
			found = true;
	}
	found = found || errno != 0;
	closedir(all);
	return end_hidden(spared) || found;
}

static bool has_children(void)
{
	siginfo_t info;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static time_t seconds_now(void)
{
	struct timespec now = {0};
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

bool sweep_end(const pid_t *spared, size_t n)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	const struct spared some = {spared, n};
	const time_t end = seconds_now() + LIMIT_SWEEP_S;
	while (has_children() && look(&some)) {
		if (seconds_now() > end)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}
