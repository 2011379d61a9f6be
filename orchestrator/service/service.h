/* The service: what its parts share. Start reading here.
 *
 * http.h takes requests, api.h has what is done for each path, store.h what is known, queue.h who is next. sandbox.h is one that
 * waits or has a room; finish.c what becomes of one that has ended, cleanup.c of what it left, sweep.c of
 * what nobody knows of. workflow.h has several of them, one after the other. */
#ifndef CAGE_SERVICE_SERVICE_H
#define CAGE_SERVICE_SERVICE_H

#include <event2/event.h>

#include "orchestrator/backend.h"
#include "orchestrator/service/child.h"
#include "orchestrator/service/config.h"
#include "orchestrator/service/reserve.h"
#include "orchestrator/service/store.h"

struct sandbox;
struct http;
struct alerts;
struct removal;
struct claim;
struct sweep;
struct warm;
struct pools;
struct workflow;
struct workflow_removal;
struct shipping;

struct service {
	struct config config;
	struct event_base *base;
	struct store *store;
	struct reserve reserve;
	struct queue queue;
	struct children *children;
	struct sandbox *sandboxes; /* those that are not at their end */
	struct sandbox *by_id[LIMIT_SERVE_BUCKETS];
	struct claim *claims;     /* directories of sandboxes that are being made */
	struct removal *removals; /* directories that are being removed */
	struct call *calls;       /* tool calls and files that are under way */
	size_t results;           /* bytes that tool calls have brought, and that are not answered yet */
	struct alerts *alerts;
	struct http *http;
	struct event *pump; /* the queue may go on */
	struct event *tick; /* deadlines, retentions */
	struct sweep *sweep;
	struct warm *warm;          /* NULL: no profile wants rooms that stand ready */
	struct pools *pools;        /* those of Azure; NULL: it is no backend */
	struct workflow *workflows; /* those that are not at their end */
	struct workflow_removal *workflow_removals;
	struct event *workflow_look; /* a step may have ended */
	struct shipping *shipping;   /* NULL: no log is shipped */
	bool stopping;
	uint64_t drained_us; /* monotonic: when it ends, whatever is still under way */
};

/* STATE/sandboxes/ID */
void service_dir(const struct service *s, const char *id, char out[BACKEND_PATH]);

/* A file without a name on the disk of the sandboxes; -1 with errno. */
int service_spool(const struct service *s);

/* A directory that nobody may take for an orphan while this is held. */
struct claim {
	struct claim *next;
	char id[STORE_ID];
};

void claim_take(struct service *s, struct claim *c);
void claim_drop(struct service *s, struct claim *c);
bool claim_is_held(const struct service *s, const char *id);

/* ---- cleanup.c ---- */

bool cleanup_start(struct service *s);
void cleanup_free(struct service *s);

/* Something may be due now. */
void cleanup_look(struct service *s);

/* One that has ended is removed at once, also where it could not be stored that it shall be. */
void cleanup_now(struct service *s, const char *id);

/* A directory that never came to be a sandbox. */
void cleanup_drop(struct service *s, const struct backend *backend, const char *id);

/* Is it being removed? */
bool cleanup_has(const struct service *s, const char *id);

/* ---- sweep.c ---- */

bool sweep_start(struct service *s);
void sweep_free(struct service *s);

#endif
