/* external: an inspector of the user's own, in any language: a program that is told of each request in lines of JSON and
 * answers each line with a verdict. docs/inspectors.md has the protocol.
 *
 * This is the conversation with it, on memory: lines out, answers in, who waits and for how long. The process or socket at
 * the other end is the business of whoever owns the conversation; it never sees a request that is on hold here.
 *
 * Whatever is not a good answer in time is a block: external_lost() is called for it. */
#ifndef CAGE_INSPECTORS_EXTERNAL_H
#define CAGE_INSPECTORS_EXTERNAL_H

#include "core/policy/policy.h"

/* Its section of the policy. One of command and socket is set; neither: there is no such inspector. */
struct external_conf {
	char *const *command;  /* arguments of the program, NULL behind the last */
	const char *directory; /* of the policy file, where the program runs */
	const char *socket;    /* path */
	uint64_t timeout_us;   /* for each answer */
	bool body;             /* is the body shown too? */
};

/* NULL: the policy has none, or it is off. */
const struct external_conf *external_conf_of(const struct policy *p);

/* What the owner of a conversation does for it. None of these calls back. */
struct external_port {
	bool (*send)(void *arg, struct slice line); /* queues it; false: there is no room */
	uint64_t (*now_us)(void *arg);
	/* What the program has to say to the operator of a request that waits: any bytes. */
	void (*note)(void *arg, struct slice id, struct slice text);
	void *arg;
};

struct external;

/* Begins without a program: everything is blocked until external_open(). NULL: no memory. */
struct external *external_new(uint64_t timeout_us, const struct external_port *port);

/* No inspection uses it any more. */
void external_free(struct external **e);

/* A program is there. It knows nothing of what was said to the one before. */
void external_open(struct external *e);

/* The program is gone, or no longer to be trusted: all that waits for it is blocked. */
void external_lost(struct external *e);

/* Why it is or will be lost, as far as the conversation knows: "it has given a wrong answer: not JSON". Never its own
 * words. */
const char *external_why(const struct external *e);

/* Takes the first line of what the program has said. CAGE_OK: *used bytes are done with. CAGE_AGAIN: it is not whole yet.
 * CAGE_EPROTO: a wrong answer. Requests go on or end in here, and whoever owns the conversation may be asked to close. */
enum cage_status external_receive(struct external *e, struct slice input, size_t *used) MUST_CHECK;

/* Blocks what has waited for too long. False: the program has said nothing in all that time, and must be given up. */
bool external_expire(struct external *e) MUST_CHECK;

/* When the next one will have waited for too long; 0: nobody waits. */
uint64_t external_deadline_us(const struct external *e);

#endif
