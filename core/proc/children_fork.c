/* The making of a child: what it shares with whom, and what it may keep of the master. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/proc/children_private.h"
#include "core/proc/logger.h"
#include "core/proc/process.h"

#define KEEP_MAX (3 + CHILDREN_MAX_KEEP)

/* ---- in the child ---- */

static _Noreturn void run_logger(struct children *c, int control)
{
	struct logger_config config = {.path = c->log,
				       .most = c->log_max,
				       .turns = c->log_turns,
				       .shared = c->log_shared,
				       .rings = c->rings,
				       .n_rings = c->n_rings,
				       .control = control,
				       .wake = c->wake,
				       .living = c->living[0]};
	int keep[] = {control, c->wake, c->living[0]};
	/* It does not die with the master: it first writes down what the others left. */
	process_become("cage-log");
	process_keep_fds(keep, sizeof(keep) / sizeof(keep[0]));
	if (c->program->drop_secrets)
		c->program->drop_secrets(c->owner);
	logger_run(&config);
}

/* A child sees its own ring of the log at most: what one writes can't be changed by another. -1: none at all. */
static void keep_ring(struct children *c, int own)
{
	for (size_t i = 0; i < c->n_rings; i++)
		if ((int)i != own)
			munmap(c->rings[i], audit_ring_size());
	munmap(c->log_shared, sizeof(*c->log_shared));
}

void child_settle(struct child *ch, const char *name, pid_t parent, int control, const int *keep, size_t n)
{
	struct children *c = ch->all;
	bool is_worker = ch->kind == CHILD_WORKER;
	int fds[KEEP_MAX];
	size_t n_fds = 0;
	if (n > CHILDREN_MAX_KEEP)
		abort();
	process_become(name);
	process_die_with(parent);
	fds[n_fds++] = control;
	if (is_worker) {
		fds[n_fds++] = c->wake;
		fds[n_fds++] = c->living[1];
	}
	for (size_t i = 0; i < n; i++)
		fds[n_fds++] = keep[i];
	process_keep_fds(fds, n_fds);
	keep_ring(c, is_worker ? (int)child_ring(ch) : -1);
}

void children_leave(struct children *c, const char *name, pid_t parent, int keep)
{
	process_become(name);
	process_die_with(parent);
	process_keep_fds(&keep, 1);
	keep_ring(c, -1);
}

/* ---- in the master ---- */

void *children_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void list_children(struct children *c, unsigned workers)
{
	c->list[c->n++] = (struct child){.kind = CHILD_LOGGER, .name = "log writer"};
	if (c->program->helper)
		c->list[c->n++] = (struct child){.kind = CHILD_HELPER, .name = c->program->helper};
	for (unsigned i = 0; i < workers; i++)
		c->list[c->n++] = (struct child){.kind = CHILD_WORKER, .name = "worker", .index = i};
}

bool children_make(struct children *c, unsigned workers)
{
	c->log_shared = children_memory(sizeof(*c->log_shared));
	c->n_rings = workers + 1;
	for (size_t i = 0; i < c->n_rings; i++) {
		void *memory = children_memory(audit_ring_size());
		if (!memory)
			return false;
		c->rings[i] = audit_ring_init(memory);
	}
	list_children(c, workers);
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c->log_shared && c->wake >= 0 && pipe2(c->living, O_CLOEXEC) == 0;
}

/* New random upper bits for the ids of this worker: unique over workers and restarts without asking anybody, and the log
 * writer takes no others from it. */
static void give_ids(struct child *worker)
{
	uint32_t r = 0;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		abort();
	worker->all->log_shared->id_space[child_ring(worker)] = r >> (AUDIT_ID_BITS - 32);
}

struct audit_ring *child_log(const struct child *worker)
{
	return worker->all->rings[child_ring(worker)];
}

uint64_t child_first_id(const struct child *worker)
{
	return (uint64_t)worker->all->log_shared->id_space[child_ring(worker)] << AUDIT_ID_BITS | 1;
}

pid_t child_fork(struct child *ch, int control)
{
	struct children *c = ch->all;
	pid_t pid = -1;
	switch (ch->kind) {
	case CHILD_LOGGER:
		c->on_log_start(c);
		pid = fork();
		if (pid == 0)
			run_logger(c, control);
		break;
	case CHILD_WORKER:
		give_ids(ch);
		pid = c->program->fork(ch, control);
		break;
	case CHILD_HELPER:
		pid = c->program->fork(ch, control);
		break;
	}
	return pid;
}
