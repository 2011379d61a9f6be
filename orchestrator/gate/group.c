/* The parent of CMD stays in another group of the same session: the kernel ignores Ctrl-Z in a group that has nobody there to
 * continue it. CMD does not lead its group, so that a shell that wants to makes one of its own: that is how the launcher tells
 * the Ctrl-C of a shell from that of a program. */
#include "orchestrator/gate/group.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/say.h"

/* The one of the standard descriptors that is the session's terminal, or -1. */
static int find_terminal(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (tcgetpgrp(fd) >= 0)
			return fd;
	return -1;
}

/* A group keeps its id when its leader is gone. */
static int join(pid_t leader, int terminal)
{
	sigset_t out_of_place; /* what the terminal sends to those who are not in its foreground */
	sigemptyset(&out_of_place);
	sigaddset(&out_of_place, SIGTTOU);
	sigprocmask(SIG_BLOCK, &out_of_place, NULL); /* undone with all others (supervise.h) */
	if (setpgid(leader, leader) < 0 || setpgid(0, leader) < 0 || (terminal >= 0 && tcsetpgrp(terminal, leader) < 0))
		return say_errno("process group");
	return 0;
}

int group_make(int launcher)
{
	const int terminal = find_terminal();
	pid_t leader = fork();
	if (leader == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (leader < 0)
		return say_errno("process group");
	int result = join(leader, terminal);
	kill(leader, SIGKILL);
	waitpid(leader, NULL, 0);
	if (result < 0 || terminal < 0)
		return result;
	if (handoff_send(launcher, HANDOFF_BEGINS, -1) == 0 && handoff_await_go(launcher) == 0)
		return 0;
	say("the launcher is gone");
	return -1;
}
