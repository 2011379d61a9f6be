/* diff.patch: the changes of a patch, for readers. */
#ifndef CAGE_ORCHESTRATOR_DIFF_H
#define CAGE_ORCHESTRATOR_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diff_bounds {
	uint64_t bytes;  /* of what the program writes, ... */
	uint64_t ms;     /* ... how long it takes, ... */
	uint64_t memory; /* ... and bytes of memory that it has */
};

enum diff_end {
	DIFF_WHOLE,
	DIFF_CUT,     /* a bound was reached */
	DIFF_TROUBLE, /* it says so itself, or was killed */
	DIFF_NONE     /* there is no such program */
};

/* Runs argv in dir within bounds; what it writes is added to out, and what it says is not heard. argv[0] is a path. */
enum diff_end diff_run(const char *const argv[], const char *dir, int out, const struct diff_bounds *bounds);

/* Where the link of that name leads, and led; nothing where there is none. patch: the directory. */
void diff_add_link(const char *patch, const char *path);

/* All the rest. */
void diff_add_files(const char *patch);

#endif
