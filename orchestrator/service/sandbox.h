/* A sandbox that waits for its place, has a room, or has just ended: what is done with it from outside. */
#ifndef CAGE_SERVICE_SANDBOX_H
#define CAGE_SERVICE_SANDBOX_H

#include "orchestrator/service/link.h"
#include "orchestrator/service/service.h"

enum phase {
	PHASE_WAITING,  /* in the queue */
	PHASE_STARTING, /* it has a keeper, or will have: nobody answers yet */
	PHASE_LINKED,   /* the keeper answers */
	PHASE_READY,    /* the room stands */
	PHASE_REAPING,  /* it is ended by force, or its keeper has: what is left of both is cleared */
	PHASE_COUNTING, /* it has ended, and its logs are counted */
	PHASE_OVER,     /* all is stored; it is freed at the end of the pass */
	PHASES
};

bool phase_may_follow(enum phase from, enum phase to);

struct sandbox {
	struct sandbox *next;
	struct sandbox *same_bucket;
	struct service *service;
	struct queued place;
	enum phase phase;
	struct row row; /* as it is stored */
	char *dir;      /* owned */
	struct link *link;
	pid_t keeper;            /* 0: not known; of use only to see whether it lives */
	struct event *clock;     /* tries to connect, and the bound of a stop */
	uint64_t since_us;       /* monotonic: of this phase */
	uint64_t stop_us;        /* monotonic: when it was asked to end; 0: it was not */
	struct result *result;   /* with PHASE_COUNTING */
	struct reload *reload;   /* NULL: it is not being given another policy */
	struct blocked *blocked; /* its blocked commands; NULL: none was asked for yet */
};

/* A row that is QUEUED gets its life; the row is taken over. NULL: no memory. */
struct sandbox *sandbox_add(struct service *s, struct row *row);

/* It could not be stored: as if it had never been added. */
void sandbox_withdraw(struct sandbox *b);

/* After a restart: one that was stored in whatever state before its end. */
struct sandbox *sandbox_resume(struct service *s, struct row *row);

/* NULL: it has ended, or never was. */
struct sandbox *sandbox_find(const struct service *s, const char *id);

/* Starts those whose turn it is. */
void sandboxes_pump(struct service *s);

/* Ends it; what is stored as the reason that we asked. Not STORE_OK: it could not be stored, and goes on. */
enum store_result sandbox_end(struct sandbox *b, const char *reason);

/* Looks at deadlines, and at what could not be stored. */
void sandboxes_tick(struct service *s);

void sandboxes_free(struct service *s);

/* ---- between the files of it ---- */

/* The only way to another phase; one that may not follow is a fault of ours, and ends us. */
void sandbox_enter(struct sandbox *b, enum phase next);

/* Stores a state. False: it could not be, and the row is as it was. */
bool sandbox_store(struct sandbox *b, enum state state, const char *reason);

/* api_policy.c: the room stands (again); a change of its policy of which nobody knows how it ended is taken back. */
void sandbox_settle_policy(struct sandbox *b);
void sandbox_drop_reload(struct sandbox *b);

/* In so many ms something is done for its phase. */
void sandbox_set_clock(struct sandbox *b, unsigned ms);
void sandbox_on_clock(evutil_socket_t fd, short what, void *arg);

/* Is there such a file in its directory? */
bool sandbox_has(const struct sandbox *b, const char *name);

/* Does its keeper live? */
bool sandbox_has_keeper(const struct sandbox *b);

/* sandbox_start.c: it has its place, or had it before us. */
void sandbox_start(struct sandbox *b);

/* What its keeper shall read at FRAME_BEGIN. False with errno. */
bool sandbox_write_begin(const struct sandbox *b);

/* A keeper is started. -1: none was; *why: a sentence, or NULL where that was said. */
struct keeper_wish {
	const char *id, *dir;
	const json_t *spec;
	uint64_t life_s, stand_ms;
};

pid_t keeper_start(struct service *s, const struct keeper_wish *w, const char **why);

/* sandbox_list.c: whose place in the queue that is. */
struct sandbox *sandbox_of_place(const struct queued *q);

/* sandbox_list.c: would one with that spec start at once? */
bool sandbox_has_turn(struct service *s, json_t *spec);

/* fall_back.c: it was made before it was asked for, and has come to its end before it has begun: it can be started as any other.
 * False: it can't, or not any more. */
bool sandbox_can_fall_back(const struct sandbox *b);
void sandbox_fall_back(struct sandbox *b);

/* sandbox_list.c: by its clock, never within a callback of its link. */
void sandbox_free_later(struct sandbox *b);

/* finish.c: the keeper is gone, or will not come; or it does not obey. */
void sandbox_finish(struct sandbox *b);
void sandbox_kill(struct sandbox *b);

#endif
