/* The processes under the master. */
#ifndef CAGE_PROXY_CHILDREN_H
#define CAGE_PROXY_CHILDREN_H

#include <sys/types.h>

#include "core/audit/writer.h"
#include "core/net/loop.h"
#include "inspectors/chain.h"
#include "proxy/auth.h"
#include "proxy/metrics.h"
#include "proxy/options.h"
#include "proxy/placeholder.h"
#include "proxy/tls.h"
#include "proxy/vault.h"
#include "proxy/worker.h"

enum child_kind { CHILD_LOGGER, CHILD_SIGNER, CHILD_WORKER };

enum child_state {
	CHILD_DOWN,     /* not running; is started when its time has come */
	CHILD_CLOSING,  /* a dead worker: the log writer still closes what it left open */
	CHILD_STARTING, /* forked, has not yet said that it is ready */
	CHILD_READY,
	CHILD_RELOADING, /* a worker that was at work and takes a new policy */
	CHILD_ENDED      /* stopped in good order, on request */
};

struct child {
	enum child_kind kind;
	unsigned index; /* of a worker */
	enum child_state state;
	pid_t pid;
	int control;            /* our end; -1 when down */
	struct event *readable; /* of control */
	struct event *restart;  /* when to start again */
	uint64_t started_us;
	unsigned failures; /* deaths in a row soon after a start */
	struct children *all;
};

#define CHILDREN_MAX (LIMIT_WORKERS + 2)

/* Everything that the processes share, made before the first of them starts. */
struct children {
	const struct options *options;
	struct loop *loop;
	struct child list[CHILDREN_MAX]; /* log writer, signer, workers */
	size_t n;
	int listeners[LIMIT_WORKERS][LIMIT_LISTENERS];
	size_t n_listeners;
	int admin_fd; /* -1: none */
	struct addr_port self[LIMIT_LISTENERS + 1];
	size_t n_self;
	char ca_dir[4096];
	struct auth *auth;
	EVP_PKEY *leaf_key;
	unsigned char ticket_keys[TLS_TICKET_KEYS];
	unsigned char fingerprint_key[CHAIN_KEY];
	unsigned char placeholder_key[PLACEHOLDER_KEY];
	struct vault *vault;   /* values of secrets: for the workers */
	struct ledger *ledger; /* counters of the workers */
	int wake;              /* eventfd of the log writer */
	/* A pipe: the master and each worker hold its writing end; the log writer reads its end, once all are gone. */
	int living[2];
	struct metrics *metrics;
	struct audit_writer_shared *log_shared;
	struct audit_ring *rings[LIMIT_WORKERS + 1]; /* the master's, then one per worker */
	size_t n_rings;
	const struct policy *policy; /* the current one */
	int policy_fd;
	size_t policy_size;
	bool had_crash;           /* one was killed by a signal while stopping */
	struct event *stop_timer; /* stopping takes no longer than this */
	enum { CHILDREN_STARTING, CHILDREN_RUNNING, CHILDREN_STOPPING } phase;
	void (*on_log_start)(struct children *); /* a log writer is about to start: what it shall write first */
	void (*on_stopped)(struct children *);   /* all have ended after children_stop */
	void (*on_failed)(struct children *);    /* one could not start at all */
	void (*on_ready)(struct children *);     /* all are at work for the first time */
};

/* Starts the log writer, then the signer, then the workers, each when the one before is ready. */
void children_start(struct children *c);

/* After SIGCHLD: takes note of all who ended, and starts them again. */
void children_reap(struct children *c);

/* Drains the workers, then ends the signer and, last, the log writer. */
void children_stop(struct children *c);

/* Gives the current policy to every worker. */
void children_send_policy(struct children *c);

void children_reopen_log(struct children *c);

bool children_are_ready(const struct children *c);

#endif
