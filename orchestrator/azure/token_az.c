/* The fourth way to a token: a program of Microsoft's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/azure/attempt.h"
#include "orchestrator/azure/token_private.h"
#include "orchestrator/launch.h"

static void use_pipe(const void *arg)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(*(const int *)arg, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
}

/* False: nothing can be read there in time. */
static bool await(int fd, uint64_t until_us)
{
	struct pollfd at = {.fd = fd, .events = POLLIN};
	return clock_mono_us() < until_us && poll(&at, 1, attempt_ms_until(until_us, LIMIT_ARM_AZ_MS)) > 0;
}

/* All that it prints. */
static size_t read_all(int fd, char *out, size_t room, uint64_t until_us)
{
	size_t n = 0;
	for (ssize_t got = 1; got > 0 && n < room;) {
		if (!await(fd, until_us))
			return 0;
		got = read(fd, out + n, room - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return n;
}

/* Who stays after all that he has printed is killed too. */
static void end_it(pid_t pid, bool has_printed, uint64_t until_us)
{
	const int fd = has_printed ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (fd < 0 || !await(fd, until_us))
		kill(pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	waitpid(pid, NULL, 0);
}

/* Found in PATH; nobody waits for anything else meanwhile, as it is for a person at a desk. */
void token_ask_az(struct token *t)
{
	static char printed[LIMIT_ARM_TOKEN * 2];
	const uint64_t until_us = clock_mono_us() + LIMIT_ARM_AZ_MS * 1000ull;
	int ends[2];
	char *line[] = {"/usr/bin/env", "az",   "account", "get-access-token", "--resource", (char *)t->resource,
			"--output",     "json", NULL};
	if (pipe2(ends, O_CLOEXEC) != 0) {
		token_fail(t, strerror(errno));
		return;
	}
	struct launch l = {.name = "/usr/bin/env",
			   .argv = line,
			   .envp = environ,
			   .in_child = use_pipe,
			   .arg = &ends[1],
			   .death_signal = SIGKILL};
	pid_t pid = launch(&l);
	close(ends[1]);
	size_t n = pid > 0 ? read_all(ends[0], printed, sizeof(printed), until_us) : 0;
	close(ends[0]);
	if (pid > 0)
		end_it(pid, n > 0, until_us);
	if (n == 0 || !token_take(t, slice_of(printed, n), "accessToken", LIMIT_ARM_AZ_LIFE_S))
		token_refuse(t,
			     "az account get-access-token has given none: is az installed, and logged in (az login)?");
	explicit_bzero(printed, sizeof(printed));
}
