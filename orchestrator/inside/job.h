/* One thing that the keeper has asked for.
 *
 *	FREE -> RUNNING -> LEAVING -> FREE  a program, until it has ended, and until what it said by then is told
 *	FREE -> SENDING -> FREE             a file or a list, until all of it is told
 *	FREE -> TAKING -> FREE              a file that is written, until FRAME_END
 *	FREE -> LINKED -> FREE              a connection, until both directions have ended
 *
 * job_enter() alone changes the state. What a program has started in the background goes on when it has ended. */
#ifndef CAGE_INSIDE_JOB_H
#define CAGE_INSIDE_JOB_H

#include <sys/types.h>

#include "orchestrator/inside/beneath.h"
#include "orchestrator/inside/frame.h"
#include "orchestrator/inside/link.h"

enum job_state { JOB_FREE, JOB_RUNNING, JOB_LEAVING, JOB_SENDING, JOB_TAKING, JOB_LINKED };

struct job {
	enum job_state state;
	uint16_t id;
	int root;                 /* borrowed */
	pid_t pid;                /* RUNNING: leads a session of its own */
	int status;               /* LEAVING: of waitpid() */
	unsigned rest;            /* LEAVING: reads that are left */
	int out, err;             /* RUNNING, LEAVING, SENDING: to be read; -1: closed */
	size_t credit;            /* bytes that may be told now */
	struct beneath_file file; /* TAKING */
	struct link link;         /* LINKED */
};

/* Where answers go. */
typedef void job_say(enum frame_kind kind, uint16_t id, struct slice payload);

/* Begins what the frame asks for, or says why it can't be done. */
void job_begin(struct job *j, const struct frame *f, int root, job_say *say);

/* FRAME_DATA, FRAME_END, FRAME_MORE, FRAME_STOP and FRAME_CANCEL. */
void job_go_on(struct job *j, const struct frame *f, job_say *say);

/* What of a job is to be waited for: at most two. */
struct job_wait {
	int fd;
	short events;
};
size_t job_waits(const struct job *j, struct job_wait out[2]);

/* One of these descriptors is ready: tells what can be read from it, and of the end of the job when that was all. */
void job_ready(struct job *j, int fd, job_say *say);

/* Its process was waited for. */
void job_ended(struct job *j, int status, job_say *say);

#endif
