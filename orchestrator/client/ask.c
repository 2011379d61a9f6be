/* Asking without an echo. Signals that end us wait while the terminal is changed, and are let in only where their coming is seen:
 * so none leaves a terminal behind that shows nothing. */
#include "orchestrator/client/ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/say.h"

static volatile sig_atomic_t came;

static void note(int number)
{
	came = number;
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

#define N_ENDING (sizeof(ending) / sizeof(ending[0]))

/* Blocks those signals and notes which one comes. before: which were blocked. */
static void hold_signals(sigset_t *before, struct sigaction *actions)
{
	struct sigaction noting = {.sa_handler = note};
	sigset_t held;
	sigemptyset(&held);
	for (size_t i = 0; i < N_ENDING; i++)
		sigaddset(&held, ending[i]);
	sigprocmask(SIG_BLOCK, &held, before);
	for (size_t i = 0; i < N_ENDING; i++)
		sigaction(ending[i], &noting, &actions[i]);
}

/* What came meanwhile is obeyed now. */
static void let_go(const sigset_t *before, const struct sigaction *actions)
{
	for (size_t i = 0; i < N_ENDING; i++)
		sigaction(ending[i], &actions[i], NULL);
	if (came)
		raise(came);
	sigprocmask(SIG_SETMASK, before, NULL);
}

static bool read_line(const sigset_t *open_mask, char *out, size_t room, size_t *len)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	*len = 0;
	while (*len < room && (*len == 0 || out[*len - 1] != '\n')) {
		int ready = ppoll(&p, 1, NULL, open_mask);
		if (came || (ready < 0 && errno != EINTR))
			return false;
		ssize_t n = ready > 0 ? read(STDIN_FILENO, out + *len, room - *len) : 0;
		if (n < 0 || (n == 0 && ready > 0))
			return n == 0;
		*len += (size_t)n;
	}
	return true;
}

/* Neither shown nor stopped by Ctrl-Z, which would leave it so. */
static struct termios silent(const struct termios *before)
{
	struct termios t = *before;
	t.c_lflag &= ~(tcflag_t)ECHO;
	t.c_cc[VSUSP] = _POSIX_VDISABLE;
	return t;
}

bool ask_silently(const char *name, char *out, size_t room, size_t *len)
{
	struct termios before, changed;
	struct sigaction actions[N_ENDING];
	sigset_t open_mask;
	if (tcgetattr(STDIN_FILENO, &before) != 0) {
		say("stdin: %s", strerror(errno));
		return false;
	}
	changed = silent(&before);
	hold_signals(&open_mask, actions);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &changed);
	fprintf(stderr, "value of %s: ", name);
	bool ok = read_line(&open_mask, out, room, len);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	fputs("\n", stderr);
	if (!ok)
		say("nothing was set");
	let_go(&open_mask, actions);
	return ok;
}
