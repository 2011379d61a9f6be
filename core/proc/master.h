/* What every master process does: compiles policies, supervises its children, follows signals, and serves the admin port.
 * A program embeds a struct master, fills in its first part, and calls the functions below in this order. */
#ifndef CAGE_PROC_MASTER_H
#define CAGE_PROC_MASTER_H

#include "core/net/listener.h"
#include "core/proc/admin.h"
#include "core/proc/children.h"
#include "core/proc/policy_store.h"

/* What a program adds; each is called with the master's owner. */
struct master_program {
	struct children_program children;
	policy_store_loader *load;
	/* A compiled policy is to come into force at a seat; false, after saying why, keeps the one before. */
	bool (*accept)(void *owner, size_t seat, const struct policy *p);
	/* SIGHUP: looks at all seats but the first; false, after saying why, if something is not as it should be. NULL: there
	 * are no others. */
	bool (*reload)(void *owner);
	void (*on_ready)(void *owner); /* all are at work for the first time */
	/* Beside its children: may clients be told that it is ready? NULL: yes. */
	bool (*is_ready)(void *owner);
	void (*metrics)(void *owner, struct text *t, uint64_t gen, bool log_ok);
};

struct master {
	const struct master_program *program;
	void *owner;
	const char *policy_file, *log;
	uint64_t log_max; /* bytes of the log; 0: any */
	bool log_turns;   /* then another one is begun */
	const char *sandbox;
	const char *ca_file; /* for the admin port; NULL: none */
	int reloads;         /* a pipe that is told the result of each (below); -1: none */
	unsigned workers;
	size_t n_seats; /* that there can be, the first included */

	struct children children;
	struct loop *loop;
	struct event *signals;
	struct admin *admin;
	struct admin_source admin_source;
	int admin_fd; /* -1: none */
	/* our own listeners, that of the admin port included, and those that are as our own */
	struct addr_port self[LIMIT_LISTENERS + 1 + LIMIT_NEVER];
	size_t n_self;
	uint32_t *loads;     /* of each seat: policies that it has had */
	bool has_roster;     /* seats are read from a directory */
	struct text refused; /* of the reload that is under way: " ID" for each */
	int exit_code;
};

/* Makes what the processes share. false: no memory or descriptor. */
bool master_open(struct master *m);

/* An open listener, remembered as our own; -1 after saying what is wrong with that option. what: said with the address that
 * it is bound to. */
int master_listen(struct master *m, const struct listen_spec *spec, const char *option, const char *what,
		  bool reuseport);

/* A listener of somebody else, LIMIT_NEVER of them at most, that is never dialled either. */
void master_never(struct master *m, const struct addr_port *at);

/* Says "WHAT ADDRESS" of an open listener: the address as it is bound now, which tells the port where 0 was asked for. */
void master_say_where(const char *what, struct listen_spec spec, int fd);

/* The same for the admin port; spec NULL: none. */
bool master_listen_admin(struct master *m, const struct listen_spec *spec);

enum master_load {
	MASTER_REJECTED, /* what is wrong was said */
	MASTER_KEPT, /* it is the one that the seat has; nothing has changed. Without a roster the first seat's is always new */
	MASTER_LOADED
};

/* Compiles the policy in path as the next generation and makes it that seat's, with id and proof of who. */
enum master_load master_load_policy(struct master *m, size_t seat, const struct seat *who, const char *path);

/* Who sits there has changed; with an empty id nobody does. keeps_policy: the seat keeps the one it has, if any. */
void master_set_seat(struct master *m, size_t seat, const struct seat *who, bool keeps_policy);

/* The result of a reload is told as a byte for the policy of the first seat: y, or n where the old one stays. With has_roster it is a
 * line: behind that byte stand a space and an id for each sandbox that was not taken as it is there now, and a space and '?' where
 * that can't be said of all of them. */

/* A sandbox was not taken, or is still there and should not be. An empty id: it can't be said which. What is no id is nobody's. */
void master_refuse(struct master *m, struct slice id);

/* A line in the log about the policy of a seat. */
void master_log_policy(struct master *m, size_t seat, bool is_loaded);

/* Starts the children. false: no memory or descriptor. */
bool master_start(struct master *m);

/* What it was started for can't be done: stops in good order, and ends with 1. */
void master_give_up(struct master *m);

/* A line of the master's own; time, sandbox and policy are put in here. */
void master_log(struct master *m, struct audit_event *e);

/* Until a signal says stop; the exit code of the program. */
int master_wait(struct master *m);

/* Frees what is the master's. */
void master_close(struct master *m);

#endif
