/* What is put into the workspace before the command begins: all files below `files`, one after the other. */
#ifndef CAGE_KEEPER_FILL_H
#define CAGE_KEEPER_FILL_H

#include "orchestrator/words.h"

struct keeper;
struct task;

struct fill {
	struct words paths; /* below files/ */
	size_t at;          /* which one is under way */
	int fd;             /* of it; -1: all of it was sent */
	struct task *task;  /* that writes it; NULL: none */
};

/* Begins, and goes on as far as the room takes it: keeper_is_filled() follows, or the end. */
void fill_begin(struct keeper *k);
void fill_go_on(struct keeper *k);
void fill_free(struct fill *f);

#endif
