/* What the gate has to say goes to stderr, as one line that begins with its name. */
#ifndef CAGE_GATE_SAY_H
#define CAGE_GATE_SAY_H

/* Exit codes of cage-gate that are not CMD's own. */
enum {
	EXIT_USAGE = 2,
	EXIT_UNLOCKED = 78,      /* the agent can't be locked in */
	EXIT_NOT_RUNNABLE = 126, /* as a shell says it of CMD */
	EXIT_NOT_FOUND = 127
};

__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* The same with the text of errno behind it; returns -1, so that a step can end with it. */
int say_errno(const char *what);

#endif
