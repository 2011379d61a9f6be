/* Process hygiene: children end with the master, and memory that holds secrets never reaches a core file. */
#include "proxy/process.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void process_harden(void)
{
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* the leak checker must be able to trace its own process */
	prctl(PR_SET_DUMPABLE, 0);
#endif
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log at its size limit is a failed write, not a death */
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

void process_keep_fds(int *keep, size_t n)
{
	unsigned from = 3;
	qsort(keep, n, sizeof(*keep), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < (int)from)
			continue;
		if ((unsigned)keep[i] > from)
			close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	close_range(from, ~0u, 0);
}

void process_become(const char *name, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* the master died before the line above */
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
