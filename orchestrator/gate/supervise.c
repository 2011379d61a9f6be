/* Signals, orphans, and the questions of a supervised child, in one loop. */
#include "orchestrator/gate/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/notify.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/sweep.h"

enum { TIME_IS_OVER = SIGALRM };

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};

static void signals_of_interest(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, TIME_IS_OVER);
	sigaddset(set, HANDOFF_END_NOW);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(set, passed_on[i]);
}

void supervise_prepare(void)
{
	sigset_t set;
	signal(SIGCHLD, SIG_DFL); /* who ignores it is not told how children have ended */
	signals_of_interest(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void supervise_undo(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Reaps everything that has ended. True, with its status, when the child is among it. */
static bool reap(pid_t child, int launcher, int *status)
{
	int one = 0;
	pid_t pid;
	while ((pid = waitpid(-1, &one, WNOHANG | WUNTRACED)) > 0) {
		if (pid != child)
			continue;
		if (!WIFSTOPPED(one)) {
			*status = one;
			return true;
		}
		if (launcher >= 0)
			handoff_send(launcher, HANDOFF_STOPPED, -1);
	}
	return false;
}

static bool is_ended_by_us;

/* A stop and its end are for all of CMD's group, if that is another than ours. */
static void pass_on(pid_t child, int number)
{
	pid_t group = number == SIGTSTP || number == SIGCONT ? getpgid(child) : 0;
	if (group <= 0 || group == getpgrp() || kill(-group, number) < 0)
		kill(child, number);
}

/* What a terminal sends reaches the child itself, as one of the same group. */
static void take_signal(const struct signalfd_siginfo *info, pid_t child)
{
	switch (info->ssi_signo) {
	case SIGCHLD:
		return;
	case TIME_IS_OVER:
		say("the time of the agent is over");
		is_ended_by_us = true;
		kill(child, SIGKILL);
		return;
	case HANDOFF_END_NOW:
		is_ended_by_us = true;
		kill(child, SIGKILL);
		return;
	default:
		if (info->ssi_code != SI_KERNEL)
			pass_on(child, (int)info->ssi_signo);
	}
}

/* Nobody but us reaps the child, so that its number is its own until then. */
static bool take_signals(int signals, pid_t child, int launcher, int *status)
{
	struct signalfd_siginfo info;
	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(&info, child);
	return reap(child, launcher, status);
}

/* The child's status, or -1. */
static int wait_for(pid_t child, int notifier, int launcher)
{
	sigset_t set;
	signals_of_interest(&set);
	int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd watched[2] = {{signals, POLLIN, 0}, {notifier, POLLIN, 0}};
	int status = -1;
	bool ended = signals < 0;
	while (!ended) {
		if (poll(watched, 2, -1) < 0 && errno != EINTR)
			break;
		if (watched[1].revents & POLLIN)
			notify_serve(notifier);
		else if (watched[1].revents)
			watched[1].fd = -1; /* nobody is left to ask */
		ended = take_signals(signals, child, launcher, &status);
	}
	if (!ended || signals < 0)
		say_errno("supervisor");
	close(signals);
	return status;
}

static int code_of(int status)
{
	if (status < 0)
		return EXIT_UNLOCKED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int supervise(pid_t child, int notifier, int launcher)
{
	return code_of(wait_for(child, notifier, launcher));
}

int supervise_room(pid_t first)
{
	int status = wait_for(first, -1, -1);
	if (status >= 0 && WIFSIGNALED(status) && !is_ended_by_us)
		say("the room was killed by signal %d", WTERMSIG(status));
	return code_of(status);
}

/* In the place of SIGKILL only: who asked for another signal gets that one. */
void supervise_outlive_parent(void)
{
	int number = 0;
	if (prctl(PR_GET_PDEATHSIG, &number) == 0 && number == SIGKILL)
		prctl(PR_SET_PDEATHSIG, HANDOFF_END_NOW);
}

int supervise_end(int code)
{
	if (sweep_end(NULL, 0))
		return code;
	say("processes of the agent are left, and can't be ended");
	return EXIT_UNLOCKED;
}
