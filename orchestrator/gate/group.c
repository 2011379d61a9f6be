/* The parent of CMD stays in another group of the same session: the kernel ignores Ctrl-Z in a group that has nobody there to
 * continue it. CMD does not lead its group, so that a shell that wants to makes one of its own: that is how the launcher tells
 * the Ctrl-C of a shell from that of a program. At its end such a shell gives the terminal back to the group that it began with,
 * which must not be empty then: its leader stays, asleep, as nobody's child, for a program may wait for all that it has. */
#include "orchestrator/gate/group.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"

/* The one of the standard descriptors that is the session's terminal, or -1. */
static int find_terminal(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (tcgetpgrp(fd) >= 0)
			return fd;
	return -1;
}

/* It has what CMD has, but for descriptors: the filter, no rights, and the end of all in the room. */
static _Noreturn void lead(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	privileges_hide();
	close_range(0, ~0u, 0);
	for (;;)
		pause();
}

/* In a process between us and the leader, which ends: the leader is the room's then. Tells its number. */
static _Noreturn void leave_leader(int told)
{
	pid_t leader = fork();
	if (leader == 0)
		lead();
	if (leader < 0 || setpgid(leader, leader) < 0 ||
	    write(told, &leader, sizeof(leader)) != (ssize_t)sizeof(leader))
		_exit(1);
	_exit(0);
}

/* The leader of a new group, or -1 with errno. */
static pid_t make_leader(void)
{
	int told[2], status = -1;
	pid_t leader = -1;
	if (pipe(told) < 0)
		return -1;
	pid_t between = fork();
	if (between == 0)
		leave_leader(told[1]);
	close(told[1]);
	if (between > 0 && waitpid(between, &status, 0) == between && status == 0 &&
	    read(told[0], &leader, sizeof(leader)) != (ssize_t)sizeof(leader))
		leader = -1;
	int error = between < 0 ? errno : EAGAIN;
	close(told[0]);
	errno = error;
	return leader;
}

static int join(pid_t leader, int terminal)
{
	sigset_t out_of_place; /* what the terminal sends to those who are not in its foreground */
	sigemptyset(&out_of_place);
	sigaddset(&out_of_place, SIGTTOU);
	sigprocmask(SIG_BLOCK, &out_of_place, NULL); /* undone with all others (supervise.h) */
	return setpgid(0, leader) < 0 || (terminal >= 0 && tcsetpgrp(terminal, leader) < 0) ? -1 : 0;
}

int group_make(int launcher)
{
	const int terminal = find_terminal();
	pid_t leader = make_leader();
	if (leader < 0 || join(leader, terminal) < 0)
		return say_errno("process group");
	if (terminal < 0) {
		kill(leader,
		     SIGKILL); /* nobody will give anything back: a group keeps its id when its leader is gone */
		return 0;
	}
	if (handoff_send(launcher, HANDOFF_BEGINS, -1) == 0 && handoff_await_go(launcher) == 0)
		return 0;
	say("the launcher is gone");
	return -1;
}
