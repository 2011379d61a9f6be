/* One thing that the keeper has asked for.
 *
 *	FREE -> RUNNING -> FREE     a program, until it has ended and what it said is told
 *	FREE -> SENDING -> FREE     a file or a list, until all of it is told
 *	FREE -> TAKING -> FREE      a file that is written, until FRAME_END
 *
 * job_enter() alone changes the state. What a program has started in the background goes on when it has ended. */
#ifndef CAGE_INSIDE_JOB_H
#define CAGE_INSIDE_JOB_H

#include <sys/types.h>

#include "orchestrator/inside/beneath.h"
#include "orchestrator/inside/frame.h"

enum job_state { JOB_FREE, JOB_RUNNING, JOB_SENDING, JOB_TAKING };

struct job {
	enum job_state state;
	uint16_t id;
	pid_t pid;                /* RUNNING: leads a session of its own */
	int out, err;             /* RUNNING, SENDING: to be read; -1: closed */
	struct beneath_file file; /* TAKING */
};

/* Where answers go. */
typedef void job_say(enum frame_kind kind, uint16_t id, struct slice payload);

/* Begins what the frame asks for, or says why it can't be done. */
void job_begin(struct job *j, const struct frame *f, int root, job_say *say);

/* FRAME_DATA, FRAME_END and FRAME_CANCEL. */
void job_go_on(struct job *j, const struct frame *f, job_say *say);

/* Tells what can be read from one of its descriptors, and of its end when that was all. */
void job_tell(struct job *j, int *fd, job_say *say);

/* Its process was waited for. */
void job_ended(struct job *j, int status, job_say *say);

#endif
