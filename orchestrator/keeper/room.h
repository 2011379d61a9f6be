/* cage run, with cage-inside as its command, and what is said over its control socket. */
#ifndef CAGE_KEEPER_ROOM_H
#define CAGE_KEEPER_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/limits.h"

struct keeper;

struct room {
	pid_t pid;       /* of cage run; 0: there is none any more */
	int status;      /* of waitpid(), then */
	int control;     /* -1: closed */
	char rundir[64]; /* its directory in /tmp; empty: not known */
	uint16_t reloads
		[LIMIT_KEEPER_RELOADS]; /* jobs of the service that wait for an answer, in their order; 0: nobody */
	size_t n_reloads;
};

/* False with a message. */
bool room_start(struct keeper *k);
void room_watch(struct keeper *k);

/* Lets it load the policy anew; the job of the service with that number is answered. */
void room_reload(struct keeper *k, uint16_t of);

/* Who asked is gone. */
void room_forget(struct room *r);

/* Asks it to end, with all in it; or kills it. */
void room_end(struct room *r);
void room_kill(struct room *r);

/* It was waited for: the last words are taken, and whatever it left behind is ended and removed. */
void room_ended(struct keeper *k, int status);

#endif
