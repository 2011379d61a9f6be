/* The two pipes to cage-inside, and the jobs that it has to do. Nothing that comes is believed but its form: a frame for a job
 * that is not there is passed over. */
#ifndef CAGE_KEEPER_WIRE_H
#define CAGE_KEEPER_WIRE_H

#include "core/base/fifo.h"
#include "orchestrator/inside/frame.h"

struct keeper;
struct task;

/* A frame for this job has come. Of FRAME_DONE the job is gone already, and another may be begun. */
typedef void task_heard(struct keeper *k, struct task *t, const struct frame *f);

struct task {
	task_heard *heard; /* NULL: free */
	void *arg;
	uint16_t id; /* 0: that of the command */
	uint16_t of; /* what the service calls it; 0: it is not the service's */
	size_t owed; /* bytes that were taken, of which cage-inside was not told */
	size_t held; /* bytes that were taken, and wait for somebody else to take them */
};

struct wire {
	int in, out; /* to it, from it; -1: closed */
	struct fifo to;
	uint64_t moved_us; /* when it took something last, or had nothing to take */
	uint16_t last_id;
	struct frame_reader from;
	struct task tasks[LIMIT_INSIDE_JOBS];
};

void wire_open(struct wire *w, int in, int out);
void wire_close(struct wire *w);
void wire_watch(struct keeper *k);

/* Whether one more job leaves enough for those of the service. */
bool wire_has_room(const struct wire *w);

/* A job with a number of its own, or as the command; NULL: there are too many. Its first frame is the caller's to send. */
struct task *wire_begin(struct keeper *k, task_heard *heard, void *arg);
struct task *wire_begin_command(struct keeper *k, task_heard *heard);

void wire_send(struct keeper *k, enum frame_kind kind, uint16_t id, struct slice payload);

/* So many bytes of it were dealt with: more may come. */
void wire_took(struct keeper *k, struct task *t, size_t n);

/* Is so much waiting for the room that nobody should add to it? */
static inline bool wire_is_clogged(const struct wire *w)
{
	return w->to.len >= LIMIT_KEEPER_QUEUE;
}

/* What is in the pipe when the other side is gone. */
void wire_drain(struct keeper *k);

/* Milliseconds until it has taken nothing for too long; -1: it may. */
int wire_patience(const struct wire *w);

/* "exit N", "signal N", "error N" of FRAME_DONE. False: it is none of them. */
enum done_how { DONE_EXIT, DONE_SIGNAL, DONE_ERROR };
bool done_parse(struct slice payload, enum done_how *how, uint64_t *number);

/* Did it do what was asked? *why: an errno, if not. */
bool done_is_good(const struct frame *f, int *why);

#endif
