/* cage-inside --await: the first step of a container that stands ready. */
#ifndef CAGE_INSIDE_AWAIT_H
#define CAGE_INSIDE_AWAIT_H

/* argv: FILE, "--", PROGRAM and the first of its arguments. Becomes PROGRAM with what it was given (given.h), or returns an exit
 * code. */
int await_given(int argc, char **argv);

#endif
