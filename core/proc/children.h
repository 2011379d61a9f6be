/* The processes under a master: a log writer, helpers that a program may have, and workers. */
#ifndef CAGE_PROC_CHILDREN_H
#define CAGE_PROC_CHILDREN_H

#include <sys/types.h>

#include "core/audit/writer.h"
#include "core/net/loop.h"
#include "core/policy/policy.h"
#include "core/proc/seat.h"

struct control;

enum child_kind {
	CHILD_LOGGER,
	CHILD_HELPER, /* what workers need beside the log: started before them, ended after them */
	CHILD_WORKER
};

enum child_state {
	CHILD_DOWN,     /* not running; is started when its time has come */
	CHILD_CLOSING,  /* a dead worker: the log writer still closes what it left open */
	CHILD_STARTING, /* forked, has not yet said that it is ready */
	CHILD_READY,
	CHILD_RELOADING, /* a worker that was at work and takes what has changed */
	CHILD_ENDED      /* stopped in good order, on request */
};

struct child {
	enum child_kind kind;
	const char *name; /* in messages */
	unsigned index;   /* of a worker */
	enum child_state state;
	pid_t pid;
	int control;            /* our end; -1 when down */
	struct event *readable; /* of control */
	struct event *restart;  /* when to start again */
	uint64_t gen;           /* of a worker: the last change that it has */
	uint64_t started_us;
	unsigned failures; /* deaths in a row soon after a start */
	struct children *all;
};

#define CHILDREN_MAX (LIMIT_WORKERS + 2)
#define CHILDREN_MAX_KEEP (2 * LIMIT_LISTENERS + LIMIT_WORKERS) /* descriptors for child_settle() */

/* What a program adds to the supervision. owner: the struct children's. */
struct children_program {
	const char *helper; /* name of its helper; NULL: it has none */
	/* Makes a helper or worker: its pid, or -1 with errno. control: the child's end. The child begins with
	 * child_settle() and does not return. */
	pid_t (*fork)(struct child *ch, int control);
	void (*drop_secrets)(void *owner);    /* in a child that needs none of them; NULL: there are none */
	void (*close_listeners)(void *owner); /* in the master that stops: clients are refused at once */
};

/* Everything that the processes share, made before the first of them starts. */
struct children {
	const struct children_program *program;
	void *owner; /* for the callbacks: whose children these are */
	const char *log;
	uint64_t log_max; /* bytes of it; 0: any */
	bool log_turns;   /* then another one is begun */
	struct loop *loop;
	struct child list[CHILDREN_MAX]; /* log writer, helper, workers */
	size_t n;
	int wake; /* eventfd of the log writer */
	/* A pipe: the master and each worker hold its writing end; the log writer reads its end, once all are gone. */
	int living[2];
	struct audit_writer_shared *log_shared;
	struct audit_ring *rings[LIMIT_WORKERS + 1]; /* the master's, then one per worker */
	size_t n_rings;
	struct seat *seats;       /* as they are now */
	int *policies;            /* descriptor of the policy of each seat; -1: none */
	size_t n_seats;           /* that there can be */
	uint64_t gen;             /* of the last change */
	bool had_crash;           /* one was killed by a signal while stopping */
	struct event *stop_timer; /* stopping takes no longer than this */
	enum { CHILDREN_STARTING, CHILDREN_RUNNING, CHILDREN_STOPPING } phase;
	void (*on_log_start)(struct children *); /* a log writer is about to start: what it shall write first */
	void (*on_stopped)(struct children *);   /* all have ended after children_stop */
	void (*on_failed)(struct children *);    /* one could not start at all */
	void (*on_ready)(struct children *);     /* all are at work for the first time */
};

/* Zeroed memory that children share with the master; NULL without. */
void *children_memory(size_t size);

/* Makes what all processes share and lists them. program, owner, log and loop are set. false: no memory or descriptor. */
bool children_make(struct children *c, unsigned workers);

/* Starts the log writer, then the helper, then the workers, each when the one before is ready. */
void children_start(struct children *c);

/* After SIGCHLD: takes note of all who ended, and starts them again. */
void children_reap(struct children *c);

/* Drains the workers, then ends the helper and, last, the log writer. */
void children_stop(struct children *c);

/* Gives every worker what has changed, one seat after the other: each says that it has one before it gets the next. */
void children_send_changes(struct children *c);

void children_reopen_log(struct children *c);

bool children_are_ready(const struct children *c);

/* Workers that do not have the last change yet. */
size_t children_behind(const struct children *c);

/* Frees timers; the processes have ended. */
void children_close(struct children *c);

/* ---- for children_program.fork ---- */

/* The helper; only when the program has one. */
struct child *children_helper(struct children *c);

static inline bool child_is_running(const struct child *ch)
{
	return ch->state == CHILD_STARTING || ch->state == CHILD_READY || ch->state == CHILD_RELOADING;
}

/* In the master: sends a message to a child that runs; ends one that does not listen. */
void child_tell(struct child *ch, const struct control *msg, int fd);

/* In the new process: named, dies with parent, keeps of all descriptors control, these and, a worker, what it needs for the
 * log, and of the log's rings its own at most. */
void child_settle(struct child *ch, const char *name, pid_t parent, int control, const int *keep, size_t n);

/* The same in a process that a program makes beside those, and that has nothing of what they share. */
void children_leave(struct children *c, const char *name, pid_t parent, int keep);

/* Of a worker: its ring of the log, and the first of the ids that are its alone. */
struct audit_ring *child_log(const struct child *worker);
uint64_t child_first_id(const struct child *worker);

#endif
