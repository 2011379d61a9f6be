/* From the loaded filter to the first instruction of CMD. */
#include "orchestrator/gate/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/gate/group.h"
#include "orchestrator/gate/missing.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/selftest.h"
#include "orchestrator/gate/supervise.h"

static int say_ready(const struct options *options, enum gate_mode mode)
{
	char line[32];
	if (options->ready < 0)
		return 0;
	int n = snprintf(line, sizeof(line), "mode %s\n", mode_name(mode));
	return write(options->ready, line, (size_t)n) == n ? 0 : say_errno("--ready");
}

/* A socket keeps the network that it was made in: one of ours as its standard input would be the agent's way out. */
static int check_streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int family = AF_UNIX;
		socklen_t len = sizeof(family);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family != AF_UNIX) {
			say("descriptor %d is a socket of the network outside", fd);
			return -1;
		}
	}
	return 0;
}

/* The variables are the room's, and the PATH among them says where CMD is. */
_Noreturn void agent_run(const struct options *options, const struct room_supplies *supplies, enum gate_mode mode,
			 unsigned loopback)
{
	if (selftest_run(mode, loopback) < 0)
		_exit(EXIT_UNLOCKED);
	if (!options->command)
		_exit(0); /* a rehearsal */
	if (check_streams() < 0 || (options->handoff >= 0 && group_make(options->handoff) < 0) ||
	    room_settle(&options->room, supplies) < 0 || say_ready(options, mode) < 0)
		_exit(EXIT_UNLOCKED);
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0 && close_range(3, ~0u, 0) < 0) {
		say_errno("close_range");
		_exit(EXIT_UNLOCKED);
	}
	supervise_undo();
	environ = (char **)options->room.env;
	execvp(options->command[0], options->command);
	int error = errno;
	say_errno(options->command[0]);
	if (error == ENOENT)
		missing_explain(options->command[0]);
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}
