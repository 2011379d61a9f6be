/* Messages to the operator, on stderr: one line each, with the name of the program before it. */
#ifndef CAGE_BASE_SAY_H
#define CAGE_BASE_SAY_H

/* Whose messages these are, from main and before the first of them. name stays valid. */
void say_as(const char *name);

/* "NAME: ..." and a line break, written at once. Control characters in it are '?'. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What say_as was given. */
const char *say_name(void);

#endif
