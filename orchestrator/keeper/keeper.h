/* The keeper of one sandbox: a process that starts cage run, speaks with cage-inside in the room (orchestrator/inside/frame.h),
 * and does for the service what that asks over a socket. It outlives the service and never the sandbox.
 *
 *	STARTING -> STANDING -> FILLING -> RUNNING -> STOPPING -> PULLING -> LEAVING -> ENDING -> ENDED
 *
 *	STARTING  cage run makes the room; cage-inside has not spoken yet
 *	STANDING  it was made before anybody has asked for it: it waits for FRAME_BEGIN. Others pass it by
 *	FILLING   files are put into the workspace
 *	RUNNING   the command, or nothing but what the service asks for
 *	STOPPING  the command was asked to end
 *	PULLING   artifacts are taken out, and the workspace, if it is to be kept
 *	LEAVING   cage-inside was left: it ends by itself, so that what its programs have used is counted
 *	ENDING    cage run was told to end
 *	ENDED     it has; the result can be written
 *
 * Any of them may be left for a later one. keeper_enter() alone changes the state. Start reading in main.c. */
#ifndef CAGE_KEEPER_KEEPER_H
#define CAGE_KEEPER_KEEPER_H

#include "orchestrator/keeper/client.h"
#include "orchestrator/keeper/fetch.h"
#include "orchestrator/keeper/fill.h"
#include "orchestrator/keeper/output.h"
#include "orchestrator/keeper/polls.h"
#include "orchestrator/keeper/publish.h"
#include "orchestrator/keeper/pull.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/keeper/room.h"
#include "orchestrator/keeper/spec.h"
#include "orchestrator/keeper/artifacts.h"
#include "orchestrator/keeper/tools.h"
#include "orchestrator/keeper/wire.h"

enum keeper_state {
	KEEPER_STARTING,
	KEEPER_STANDING,
	KEEPER_FILLING,
	KEEPER_RUNNING,
	KEEPER_STOPPING,
	KEEPER_PULLING,
	KEEPER_LEAVING,
	KEEPER_ENDING,
	KEEPER_ENDED
};

struct keeper {
	enum keeper_state state;
	uint64_t until_us;                /* when the state must be over; 0: it has no bound */
	uint64_t sample_us;               /* when the workspace is looked at next */
	char path[LIMIT_KEEPER_PATH + 1]; /* of its directory, which it works in */
	struct spec spec;
	struct result result;
	struct output output;
	struct room room;
	struct wire wire;
	struct client client;
	struct fill fill;
	struct artifacts artifacts;
	struct pull pull;
	struct tools tools;
	struct fetch fetches[LIMIT_KEEPER_FETCHES];
	struct publish publish;
	struct polls polls;
	int signals;
};

void keeper_enter(struct keeper *k, enum keeper_state next);

/* What became of it, unless that is known already; then it ends. message: NULL: nothing to be said. */
void keeper_finish(struct keeper *k, enum result_state state, const char *reason, const char *message);

/* All that is wanted of the room is done. */
void keeper_leave(struct keeper *k);

/* The artifacts are out, or won't be: what else is wanted follows. */
void keeper_took_artifacts(struct keeper *k);

/* Somebody has asked for its end. is_deleted: nothing of it will be wanted. */
void keeper_stop(struct keeper *k, bool is_deleted);

/* The room stands and can be asked for something. */
static inline bool keeper_takes_jobs(const struct keeper *k)
{
	return k->state == KEEPER_RUNNING || k->state == KEEPER_STOPPING;
}

/* stand.c: somebody has asked for the room that stands. Told again, it does nothing. */
void keeper_begin(struct keeper *k);

/* cage-inside is there; all files are in their place; cage run has ended. */
void keeper_is_ready(struct keeper *k);
void keeper_is_filled(struct keeper *k);
void keeper_has_begun(struct keeper *k); /* the command, where that is not at once */
void keeper_room_ended(struct keeper *k);

/* The time of the state is over. */
void keeper_time_is_over(struct keeper *k);

/* Asks how full the workspace is; so full it was. */
void keeper_sample(struct keeper *k);
void keeper_is_full(struct keeper *k, uint64_t bytes);

#endif
