/* A connection to the keeper of a sandbox, and the jobs that are done over it (orchestrator/inside/frame.h). What comes from it
 * has passed the sandbox: nothing of it is believed but its form. */
#ifndef CAGE_SERVICE_LINK_H
#define CAGE_SERVICE_LINK_H

#include <event2/event.h>
#include <sys/types.h>

#include "orchestrator/inside/frame.h"

struct link;
struct link_job;

enum job_how { JOB_EXIT, JOB_SIGNAL, JOB_ERROR };

struct job_end {
	enum job_how how;
	int number; /* exit code, signal or errno */
};

/* "exit N", "signal N", "error N" of FRAME_DONE; EPROTO for what is none of them. */
struct job_end job_end_parse(struct slice payload);

struct link_events {
	void (*ready)(void *arg, bool has_begun);     /* the room stands; told again when its command begins */
	void (*ended)(void *arg, struct job_end end); /* its command has */
	void (*closed)(void *arg); /* the keeper is gone, or speaks nonsense; the link is free to be closed */
	void (*stands)(void *arg); /* the room stands, and waits for FRAME_BEGIN; NULL: not of interest */
};

struct job_events {
	void (*data)(void *arg, enum frame_kind kind, struct slice bytes); /* FRAME_OUT, FRAME_ERR */
	void (*done)(void *arg, struct job_end end);                       /* the job is no more */
	void (*drained)(void *arg); /* there is room for more data; NULL: not of interest */
};

/* NULL with errno: nobody listens there (yet). */
struct link *link_open(struct event_base *base, const char *path, const struct link_events *events, void *arg);

/* Its jobs end as if the keeper were gone. */
void link_close(struct link **l);

/* Who listens there; 0: not known. */
pid_t link_keeper(const struct link *l);

/* A message that is no job. */
void link_send(struct link *l, enum frame_kind kind, struct slice payload);

/* May one more job begin now? */
bool link_has_place(const struct link *l);

/* NULL: too many at the same time, or the payload is too long. */
struct link_job *link_begin(struct link *l, enum frame_kind kind, struct slice payload, const struct job_events *events,
			    void *arg);

/* FRAME_DATA, FRAME_END, FRAME_CANCEL. */
void job_send(struct link_job *j, enum frame_kind kind, struct slice payload);

/* May more data be sent now? */
bool job_has_room(const struct link_job *j);

/* Nobody is interested any more: it is cancelled, and no event comes. */
void job_forget(struct link_job *j);

#endif
