/* A pseudo-terminal between CMD's and ours. Only those of stdin, stdout and stderr that are terminals are replaced. */
#include "orchestrator/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/write_all.h"

/* The one of ours that a terminal's properties are taken from, and to which output goes. */
static int our_tty(const struct tty *t)
{
	if (t->is_tty[1])
		return 1;
	return t->is_tty[2] ? 2 : 0;
}

bool tty_open(struct tty *t)
{
	struct winsize size;
	bool any = false;
	*t = (struct tty){.master = -1, .slave = -1};
	for (int fd = 0; fd < 3; fd++)
		any |= t->is_tty[fd] = isatty(fd) == 1;
	if (!any)
		return true;
	int from = t->is_tty[0] ? 0 : our_tty(t);
	bool known = tcgetattr(from, &t->before) == 0 && ioctl(from, TIOCGWINSZ, &size) == 0;
	if (openpty(&t->master, &t->slave, NULL, known ? &t->before : NULL, known ? &size : NULL) != 0) {
		say("can't make a terminal: %s", strerror(errno));
		return false;
	}
	fcntl(t->master, F_SETFD, FD_CLOEXEC);
	fcntl(t->slave, F_SETFD, FD_CLOEXEC);
	fcntl(t->master, F_SETFL, O_RDWR | O_NONBLOCK);
	return true;
}

void tty_enter(const struct tty *t)
{
	if (t->slave < 0)
		return;
	bool ok = ioctl(t->slave, TIOCSCTTY, 0) == 0;
	for (int fd = 0; ok && fd < 3; fd++)
		ok = !t->is_tty[fd] || dup2(t->slave, fd) >= 0;
	if (ok)
		return;
	say("CMD can't have its terminal: %s", strerror(errno));
	_exit(1);
}

/* Who changes or reads a terminal from behind is stopped for it. One that is nobody's to control has no foreground. */
bool tty_is_behind(const struct tty *t)
{
	pid_t front = t->is_tty[0] && t->master >= 0 ? tcgetpgrp(0) : -1;
	return front >= 0 && front != getpgrp();
}

/* What is typed is CMD's to echo and to edit, wherever its output goes. */
void tty_enter_raw(struct tty *t)
{
	struct termios raw = t->before;
	if (!t->is_tty[0] || t->master < 0 || tty_is_behind(t))
		return;
	cfmakeraw(&raw);
	t->raw = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

void tty_leave_raw(struct tty *t)
{
	if (t->raw)
		tcsetattr(0, TCSADRAIN, &t->before);
	t->raw = false;
}

void tty_begin(struct tty *t)
{
	if (t->slave < 0)
		return;
	close(t->slave);
	t->slave = -1;
	tty_enter_raw(t);
}

void tty_has_begun(struct tty *t)
{
	t->leader = t->master >= 0 ? tcgetpgrp(t->master) : 0;
	tty_flush_input(t);
}

void tty_resize(struct tty *t)
{
	struct winsize size;
	if (t->master >= 0 && ioctl(our_tty(t), TIOCGWINSZ, &size) == 0)
		ioctl(t->master, TIOCSWINSZ, &size);
}

/* ---- what is typed ---- */

bool tty_wants_input(const struct tty *t)
{
	return t->master >= 0 && t->is_tty[0] && t->n_typed < sizeof(t->typed) && !tty_is_behind(t);
}

/* Is Ctrl-C a signal there, and for those with whom CMD began? A shell puts itself or its jobs in the foreground, and a
 * program that draws on the whole screen takes the byte for itself: they know what to do about it. */
static bool is_signal(const struct tty *t, char byte)
{
	struct termios theirs;
	if (!t->raw || tcgetattr(t->master, &theirs) != 0 || !(theirs.c_lflag & ISIG))
		return false;
	const cc_t interrupt = theirs.c_cc[VINTR];
	if (interrupt == _POSIX_VDISABLE || (cc_t)byte != interrupt)
		return false;
	return t->leader > 0 && tcgetpgrp(t->master) == t->leader;
}

/* Before CMD has begun it means us, by our own settings. */
static bool is_for_us(const struct tty *t, char byte)
{
	const cc_t interrupt = t->before.c_cc[VINTR];
	return t->leader == 0 && (t->before.c_lflag & ISIG) && interrupt != _POSIX_VDISABLE && (cc_t)byte == interrupt;
}

static bool is_second(struct tty *t)
{
	uint64_t now = clock_mono_us(), before = t->interrupted_us;
	t->interrupted_us = now;
	return before > 0 && now - before < LIMIT_INTERRUPT_MS * 1000ull;
}

enum tty_input tty_take_input(struct tty *t)
{
	ssize_t n = read(0, t->typed + t->n_typed, sizeof(t->typed) - t->n_typed);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return TTY_GOES_ON;
	if (n <= 0)
		return TTY_ENDED;
	for (ssize_t i = 0; i < n; i++) {
		const char byte = t->typed[t->n_typed + (size_t)i];
		if (is_for_us(t, byte))
			return TTY_INTERRUPT;
		if (is_signal(t, byte) && is_second(t))
			return TTY_KILL;
	}
	t->n_typed += (size_t)n;
	tty_flush_input(t);
	return TTY_GOES_ON;
}

void tty_flush_input(struct tty *t)
{
	ssize_t n = t->n_typed > 0 && t->leader > 0 ? write(t->master, t->typed, t->n_typed) : 0;
	if (n <= 0)
		return;
	t->n_typed -= (size_t)n;
	memmove(t->typed, t->typed + n, t->n_typed);
}

/* ---- what CMD writes ---- */

bool tty_copy_output(struct tty *t)
{
	char buf[16384];
	ssize_t n = read(t->master, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	return n > 0 && write_all(our_tty(t), buf, (size_t)n);
}

void tty_close(struct tty *t)
{
	char buf[16384];
	ssize_t n;
	if (t->master >= 0)
		for (size_t passed = 0; passed < LIMIT_TTY_LAST; passed += (size_t)n) {
			n = read(t->master, buf, sizeof(buf));
			if (n <= 0 || !write_all(our_tty(t), buf, (size_t)n))
				break;
		}
	tty_leave_raw(t);
	if (t->master >= 0)
		close(t->master);
	if (t->slave >= 0)
		close(t->slave);
	t->master = t->slave = -1;
}
