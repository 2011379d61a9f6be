/* Process hygiene: children end with the master, and memory that holds secrets never reaches a core file. */
#include "core/proc/process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/standard_fds.h"

void process_harden(void)
{
	if (standard_fds_open() != 0) {
		say("/dev/null: %s", strerror(errno));
		exit(1);
	}
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* the leak checker must be able to trace its own process */
	prctl(PR_SET_DUMPABLE, 0);
#endif
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max; /* every connection takes two */
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGCHLD, SIG_DFL); /* who ignores it is not told how children have ended */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log at its size limit is a failed write, not a death */
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* A child that can't let go of what is not its own must not run. */
static void must_close(unsigned from, unsigned to)
{
	if (close_range(from, to, 0) == 0)
		return;
	say("close_range is needed (Linux 5.9 or later)");
	_exit(1);
}

void process_keep_fds(int *keep, size_t n)
{
	unsigned from = 3;
	qsort(keep, n, sizeof(*keep), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < (int)from)
			continue;
		if ((unsigned)keep[i] > from)
			must_close(from, (unsigned)keep[i] - 1);
		from = (unsigned)keep[i] + 1;
	}
	must_close(from, ~0u);
}

void process_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* the master died before the line above */
}

void process_become(const char *name)
{
	prctl(PR_SET_NAME, name);
	/* A terminal's Ctrl-C reaches the whole group: only the master acts on it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
