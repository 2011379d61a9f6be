/* What a sandbox of the topology `split` has beside its group: an identity at the gateway, made before the group and removed after it,
 * and a decision log there. One call at a time is made of it:
 *
 *	SPLIT_NONE -> SPLIT_COMES -> SPLIT_IDLE -> SPLIT_LOGS -> ... -> SPLIT_TELLS -> SPLIT_DELETES -> SPLIT_GONE
 *
 *	NONE     the gateway has not taken it yet
 *	COMES    the identity is asked for
 *	PUTS     once more, when the gateway has forgotten it
 *	LOGS     a look at the log, which finds that out
 *	TELLS    the group is gone: what is left of the log
 *	DELETES  the identity goes */
#ifndef CAGE_ACI_SPLIT_H
#define CAGE_ACI_SPLIT_H

#include "orchestrator/aci/intake.h"

struct aci;
struct aci_options;

enum split_state {
	SPLIT_NONE,
	SPLIT_COMES,
	SPLIT_IDLE,
	SPLIT_PUTS,
	SPLIT_LOGS,
	SPLIT_TELLS,
	SPLIT_DELETES,
	SPLIT_GONE,
	SPLIT_STATES
};

/* A look may be followed by the next at once, and the end of the group may come while one is under way. */
static inline bool split_may_follow(enum split_state from, enum split_state to)
{
	static const unsigned next[SPLIT_STATES] = {
		[SPLIT_NONE] = 1u << SPLIT_COMES | 1u << SPLIT_DELETES,
		[SPLIT_COMES] = 1u << SPLIT_NONE | 1u << SPLIT_IDLE,
		[SPLIT_IDLE] = 1u << SPLIT_PUTS | 1u << SPLIT_LOGS | 1u << SPLIT_TELLS,
		[SPLIT_PUTS] = 1u << SPLIT_IDLE,
		[SPLIT_LOGS] = 1u << SPLIT_IDLE | 1u << SPLIT_PUTS | 1u << SPLIT_LOGS | 1u << SPLIT_TELLS,
		[SPLIT_TELLS] = 1u << SPLIT_TELLS | 1u << SPLIT_DELETES,
		[SPLIT_DELETES] = 1u << SPLIT_GONE,
		[SPLIT_GONE] = 0,
	};
	return next[from] & 1u << to;
}

#define SPLIT_SANDBOXES "/v1/sandboxes"
#define SPLIT_TOKEN 44 /* 32 bytes as base64url without padding, and a NUL */

struct split {
	enum split_state state;
	struct intake intake;
	struct intake_call call;
	char token[SPLIT_TOKEN];
	char cursor[64];  /* of the log; "": its beginning */
	uint64_t look_us; /* when it is looked at next */
	unsigned looks;   /* answers of this look, or of SPLIT_TELLS, that had something */
	unsigned lasts;   /* looks of SPLIT_TELLS that were for nothing */
};

/* False with a message: there is no random token to be had, or none of the intake's. */
bool split_open(struct aci *a);
void split_close(struct aci *a);

/* The identity is asked for; when it is taken, the group is. */
void split_begin(struct aci *a);

/* The group is about to go: nobody is told of it any more. */
void split_hold(struct aci *a);

/* How it is asked, the path below it that removes one, and whether that is gone now, or never was ours: the gateway removes nobody's but its
 * owner's. */
struct intake split_intake(const struct aci_options *o, struct web *web);
void split_path(const struct aci_options *o, const char *id, char out[LIMIT_ARM_URL]);
bool split_is_left(const struct intake_call *c);

/* Goes on, in each pass of the loop. */
void split_look(struct aci *a);

/* The group is gone, or was never asked for. */
void split_leave(struct aci *a);

/* ---- split_told.c ---- */

/* Placeholders of the policy, for the agent. What is wrong with them, or NULL. */
const char *told_variables(struct aci *a, json_t *env);

/* Those of the bytes, which are moved together, that are whole lines of the log of this sandbox; that there were others is said. */
struct slice told_lines(const struct aci *a, char *bytes, size_t len);

/* ---- split_others.c ---- */

/* Without a sandbox: removes an identity; prints the ids of all of this service; tries whether the gateway answers. False with a
 * message. */
bool split_remove(const struct aci_options *o, struct web *web, const char *id);
bool split_list(const struct aci_options *o, struct web *web);
bool split_check(const struct aci_options *o, struct web *web);

#endif
