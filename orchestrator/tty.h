/* The terminal of CMD: one of its own, so that it can neither read nor write ours but through us. */
#ifndef CAGE_ORCHESTRATOR_TTY_H
#define CAGE_ORCHESTRATOR_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

struct tty {
	int master, slave;     /* -1: none of stdin, stdout and stderr is a terminal */
	bool is_tty[3];        /* which of them are, and so are replaced for CMD */
	bool raw;              /* ours is in raw mode */
	struct termios before; /* ours, of stdin if that is one */
	pid_t leader;          /* id of the group that CMD began with; 0: it has not begun */
	char typed[4096];      /* from ours, not yet taken by CMD's */
	size_t n_typed;
	uint64_t interrupted_us; /* the last Ctrl-C that was for CMD to obey; 0: none */
};

/* Looks at stdin, stdout and stderr, and makes a terminal where it takes one. False with a message. */
bool tty_open(struct tty *t);

/* In the child, after setsid(): CMD's terminal in the place of ours. */
void tty_enter(const struct tty *t);

/* In the parent, once the child has it. Ours goes into raw mode, if it is what is typed on. */
void tty_begin(struct tty *t);

/* CMD is about to begin, and has the terminal. */
void tty_has_begun(struct tty *t);

/* Is stdin a terminal that somebody else has in the foreground? Then it is to be left alone. */
bool tty_is_behind(const struct tty *t);

bool tty_wants_input(const struct tty *t);

enum tty_input { TTY_GOES_ON, TTY_ENDED, TTY_INTERRUPT, TTY_KILL };

/* Reads what was typed. TTY_INTERRUPT: Ctrl-C, before CMD has begun; what else is typed until then is kept for it. TTY_KILL: Ctrl-C for the second time, while the process group that CMD began with is the one that
 * it is meant for. */
enum tty_input tty_take_input(struct tty *t);

/* Gives what was typed to CMD's terminal; keeps what does not fit. */
void tty_flush_input(struct tty *t);

/* Copies what CMD wrote. False: nobody has that terminal any more. */
bool tty_copy_output(struct tty *t);

/* Ours has another size now. */
void tty_resize(struct tty *t);

/* Ours as it was before, and in raw mode again, if it is in front: around a stop of this process. */
void tty_leave_raw(struct tty *t);
void tty_enter_raw(struct tty *t);

/* Copies the last output and closes all. */
void tty_close(struct tty *t);

#endif
