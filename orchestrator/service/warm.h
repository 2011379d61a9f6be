/* The warm pool: for each profile with `warm: N`, N rooms that stand before anybody has asked for them. Proxy, DNS and limits are
 * those of the profile, cage-inside idles, and nothing has run in them.
 *
 * A create that wants just such a room is given one: its directory, and with that its id, take the place of those that were made
 * for the create, and from there on it goes the way of any other, into the store, through the queue, to its start, which then is a
 * FRAME_BEGIN to a keeper that is there. It is never given back, and never given twice: its id is the key of a row before it is
 * told anything.
 *
 * Those that stand are known to this process alone. What a service that was killed has left of them is without a row, and the sweep
 * ends it: so none outlives the configuration that it was made from. */
#ifndef CAGE_SERVICE_WARM_H
#define CAGE_SERVICE_WARM_H

#include "orchestrator/service/policies.h"
#include "orchestrator/service/service.h"

/* What a create has come to. */
struct warm_wish {
	const json_t *full; /* create.h */
	json_t *spec;
	const struct policy_facts *facts;
};

/* False: no memory. */
bool warm_start(struct service *s);
void warm_free(struct service *s);

/* True: the claim and the directory, which has `files`, are those of a room that stands, and the spec says so. False: all is as it
 * was. */
bool warm_give(struct service *s, const struct warm_wish *wish, struct claim *claim, char dir[BACKEND_PATH]);

/* {wanted, standing}, of all profiles. */
json_t *warm_json(const struct service *s);

#endif
