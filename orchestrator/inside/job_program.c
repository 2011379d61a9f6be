/* Jobs that are programs: their start, what they write, and their end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/inside/job_private.h"

/* ---- the start ---- */

static _Noreturn void become(char **words, const int out[2], const int err[2])
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	int input = open("/dev/null", O_RDONLY);
	if (input < 0 || dup2(input, 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	if (close_range(3, INT_MAX, 0) != 0) /* gVisor takes no more */
		_exit(126);
	if (words[0][0] && chdir(words[0]) != 0) {
		dprintf(2, "%s: %s\n", words[0], strerror(errno));
		_exit(126);
	}
	execvp(words[1], words + 1);
	dprintf(2, "%s: %s\n", words[1], strerror(errno));
	_exit(127);
}

static int start(char **words, const int out[2], const int err[2])
{
	pid_t pid = fork();
	if (pid == 0)
		become(words, out, err);
	return pid;
}

void job_run(struct job *j, char **words, job_say *say)
{
	int out[2], err[2];
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0) {
		job_done(j, say, "error", errno);
		return;
	}
	if (pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0) {
		close(out[0]);
		close(out[1]);
		job_done(j, say, "error", errno);
		return;
	}
	/* What the program writes to must not be non-blocking for it. */
	fcntl(out[1], F_SETFL, 0);
	fcntl(err[1], F_SETFL, 0);
	j->pid = start(words, out, err);
	int why = errno;
	j->out = out[0];
	j->err = err[0];
	close(out[1]);
	close(err[1]);
	if (j->pid < 0)
		job_done(j, say, "error", why);
	else
		job_enter(j, JOB_RUNNING);
}

/* ---- what they write, and their end ---- */

enum told job_tell(struct job *j, int *fd, job_say *say)
{
	char bytes[LIMIT_INSIDE_FRAME];
	ssize_t n = read(*fd, bytes, j->credit < sizeof(bytes) ? j->credit : sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return TOLD_NOTHING;
	if (n <= 0) {
		job_shut(fd);
		return TOLD_ALL;
	}
	j->credit -= (size_t)n;
	say(fd == &j->out ? FRAME_OUT : FRAME_ERR, j->id, slice_of(bytes, (size_t)n));
	return TOLD_SOME;
}

/* What is in a pipe by then; who still writes to it is somebody in the background. False: the window is full. */
static bool tell_rest(struct job *j, int *fd, job_say *say)
{
	enum told told = TOLD_SOME;
	while (*fd >= 0 && told == TOLD_SOME && j->rest > 0 && j->credit > 0) {
		told = job_tell(j, fd, say);
		j->rest--;
	}
	if (*fd >= 0 && told == TOLD_SOME && j->rest > 0)
		return false;
	job_shut(fd);
	return true;
}

void job_tell_end(struct job *j, job_say *say)
{
	job_say_used(j, say);
	if (WIFSIGNALED(j->status))
		job_done(j, say, "signal", WTERMSIG(j->status));
	else
		job_done(j, say, "exit", WEXITSTATUS(j->status));
}

void job_leave(struct job *j, job_say *say)
{
	if (tell_rest(j, &j->out, say) && tell_rest(j, &j->err, say))
		job_tell_end(j, say);
}

void job_ended(struct job *j, int status, job_say *say)
{
	j->pid = 0;
	j->status = status;
	j->rest = LIMIT_INSIDE_REST;
	job_enter(j, JOB_LEAVING);
	job_leave(j, say);
}

/* It alone as well: it may not lead a session yet. */
void job_signal(const struct job *j, int number)
{
	if (kill(-j->pid, number) != 0)
		kill(j->pid, number);
}
