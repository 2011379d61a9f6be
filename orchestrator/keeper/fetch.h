/* Requests that cage-fetch makes for the service: one process each, with what was asked for on its stdin. */
#ifndef CAGE_KEEPER_FETCH_H
#define CAGE_KEEPER_FETCH_H

#include <sys/types.h>

#include "core/base/fifo.h"

struct frame;
struct keeper;

/* fetch_enter() alone changes it. */
enum fetch_state {
	FETCH_FREE,
	FETCH_ASKING,  /* more of what is asked for may come */
	FETCH_ASKED,   /* all of it is there */
	FETCH_LEAVING, /* the process has ended, but not all that it said was told */
};

struct fetch {
	enum fetch_state state;
	uint16_t of; /* the service's number; 0: it does not want to know any more */
	pid_t pid;   /* 0: it was waited for */
	int status;
	int in, out; /* -1: closed */
	struct fifo to;
	size_t asked; /* bytes, all together */
};

/* FRAME_FETCH, and then FRAME_DATA, FRAME_END and FRAME_CANCEL of it. */
void fetch_begin(struct keeper *k, const struct frame *f);
void fetch_go_on(struct keeper *k, const struct frame *f);
struct fetch *fetch_find(struct keeper *k, uint16_t of);
void fetch_watch(struct keeper *k);

/* Was it one of them? */
bool fetch_ended(struct keeper *k, pid_t pid, int status);

void fetch_kill_all(struct keeper *k);

#endif
