/* The fourth way to a token: a program of Microsoft's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/azure/token_private.h"
#include "orchestrator/launch.h"

static void use_pipe(const void *arg)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(*(const int *)arg, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
}

/* All that it prints, within a time. */
static size_t read_all(int fd, char *out, size_t room)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_ARM_AZ_MS * 1000ull;
	size_t n = 0;
	for (ssize_t got = 1; got > 0 && n < room;) {
		const uint64_t now = clock_mono_us();
		struct pollfd at = {.fd = fd, .events = POLLIN};
		if (now >= until_us || poll(&at, 1, (int)((until_us - now) / 1000) + 1) <= 0)
			return 0;
		got = read(fd, out + n, room - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return n;
}

/* Found in PATH; nobody waits for anything else meanwhile, as it is for a person at a desk. */
void token_ask_az(struct token *t)
{
	static char printed[LIMIT_ARM_TOKEN * 2];
	int ends[2], status = 0;
	char *argv[] = {"az",   "account", "get-access-token", "--resource", (char *)t->resource, "--output",
			"json", NULL};
	char *line[] = {"/usr/bin/env", argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], NULL};
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
	size_t n = pid > 0 ? read_all(ends[0], printed, sizeof(printed)) : 0;
	close(ends[0]);
	if (pid > 0 && n == 0)
		kill(pid, SIGKILL);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (n == 0 || !token_take(t, slice_of(printed, n), "accessToken", LIMIT_ARM_AZ_LIFE_S))
		token_refuse(t,
			     "az account get-access-token has given none: is az installed, and logged in (az login)?");
	explicit_bzero(printed, sizeof(printed));
}
