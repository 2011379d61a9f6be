/* Between the files of the warm pool. */
#ifndef CAGE_SERVICE_WARM_PRIVATE_H
#define CAGE_SERVICE_WARM_PRIVATE_H

#include "orchestrator/service/link.h"
#include "orchestrator/service/warm.h"

#define WARM_CONTENT 65 /* SHA-256, as text */

enum warm_state {
	WARM_CHECKING, /* its policy is copied and tried */
	WARM_STARTING, /* it has a keeper, which does not answer yet */
	WARM_LINKED,   /* the keeper answers */
	WARM_STANDING,
	WARM_LOST /* it came to nothing; its clock ends it */
};

/* A room that stands, or will. */
struct warm_room {
	struct warm_room *next;
	struct warm_pool *pool;
	enum warm_state state;
	uint64_t since_us; /* monotonic: of that state */
	struct claim claim;
	char dir[BACKEND_PATH];
	char content[WARM_CONTENT]; /* warm_content() when it was made */
	struct policy_facts facts;
	json_t *errors;
	struct event *clock;
	struct link *link;
	pid_t keeper; /* that was started; 0: none */
};

/* Those of one profile. */
struct warm_pool {
	struct warm_pool *next;
	struct service *service;
	const char *name;    /* of the profile; the configuration's */
	size_t wanted;       /* rooms */
	json_t *full, *spec; /* as of a create that names it and says nothing else */
	json_t *shape;       /* warm_shape() of them */
	struct warm_room *rooms;
	unsigned failures;      /* one after the other */
	uint64_t not_before_us; /* monotonic: no new one is begun */
};

struct warm {
	struct warm_pool *pools;
	struct event *clock; /* rooms may be missing, or old */
};

/* ---- warm_match.c ---- */

/* What a room is made of, and can't be given later; a new object. */
json_t *warm_shape(const json_t *full, const json_t *spec);

/* What that has meant when it was looked at: the policy, and the values of secrets. False: a value is not there. */
bool warm_content(const struct config *c, const json_t *spec, const struct policy_facts *facts, char out[WARM_CONTENT]);

/* Is all that this asks for beside a room something that a room which stands can be given? */
bool warm_fits(const struct warm_pool *p, const json_t *spec);

/* ---- warm_make.c ---- */

/* Begins one. False: not now. */
bool warm_make(struct warm_pool *p);

/* Ends it, whatever state it is in, with its keeper and its directory. */
void warm_drop(struct warm_room *r);

/* It is somebody's now: only what was here for it goes. */
void warm_forget(struct warm_room *r);

/* ---- warm.c: what became of one ---- */

void warm_stands(struct warm_room *r);
void warm_failed(struct warm_room *r, const char *why);

#endif
