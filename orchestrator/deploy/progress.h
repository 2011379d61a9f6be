/* How far things are: a line for each of them. On a terminal they stay where they are, and change; elsewhere each change is a line. */
#ifndef CAGE_DEPLOY_PROGRESS_H
#define CAGE_DEPLOY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress_row {
	char *name; /* owned */
	char state[64];
};

struct progress {
	FILE *out;
	bool is_live; /* lines are written over */
	struct progress_row *rows;
	size_t n, drawn; /* lines of them on the terminal */
	uint64_t began_us, drawn_us;
};

void progress_open(struct progress *p, FILE *out);

/* name and state: of others, made harmless here. */
void progress_set(struct progress *p, const char *name, const char *state);

/* What has changed, and the time; as often as it is liked. */
void progress_draw(struct progress *p);

/* Something else is about to be said: lines are drawn below that from then on. */
void progress_below(struct progress *p);

/* The lines stay, and others begin below them. */
void progress_end(struct progress *p);
void progress_close(struct progress *p);

#endif
