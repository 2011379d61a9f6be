/* cage-gateway: the proxy of a network of agents, and the place where the orchestrator says who they are.
 *
 * It owns the directory of `cage-proxy --sandboxes`, starts that proxy as its child, and takes requests over TLS (docs/azure.md has
 * the API). A change of the directory is one of a queue, made one after the other (change.h); a request that changes something is
 * answered when the workers of the proxy have taken it. The decision log is a file that is turned at a bound; each sandbox's lines
 * are told to who asks for them, and all of them go to stdout too.
 *
 * A proxy that ends, or that does not answer any more, ends all of it: whoever runs the container starts it anew. */
#ifndef CAGE_GATEWAY_H
#define CAGE_GATEWAY_H

#include <event2/event.h>

#include "core/base/limits.h"
#include "core/net/listener.h"
#include "core/net/loop.h"
#include "orchestrator/gateway/log.h"
#include "orchestrator/service/child.h"
#include "orchestrator/words.h"

struct change;
struct intake;
struct ceiling;

struct gateway_options {
	struct listen_spec at; /* of the intake */
	const char *cert, *key, *token;
	const char *state;                  /* directory of sandboxes, log and admin socket */
	const char *policy, *ca_dir, *keys; /* of cage-proxy; the latter two may be NULL */
	const char *log_dir;                /* NULL: in state */
	uint64_t log_bytes, log_files;
	char *const *proxy; /* further words of cage-proxy, up to NULL */
};

enum gateway_state {
	GATEWAY_STARTS, /* until the proxy answers */
	GATEWAY_SERVES,
	GATEWAY_STOPS,
	GATEWAY_STATES
};

static inline bool gateway_may_follow(enum gateway_state from, enum gateway_state to)
{
	static const unsigned next[GATEWAY_STATES] = {
		[GATEWAY_STARTS] = 1u << GATEWAY_SERVES | 1u << GATEWAY_STOPS,
		[GATEWAY_SERVES] = 1u << GATEWAY_STOPS,
		[GATEWAY_STOPS] = 1u << GATEWAY_STOPS, /* it may be told twice */
	};
	return next[from] & 1u << to;
}

struct gateway {
	enum gateway_state state;
	const struct gateway_options *options;
	struct loop *loop;
	struct children *children;
	struct event *signals[4];
	/* proxy.c */
	pid_t proxy;
	int proxy_fd, reloads; /* a pidfd; the pipe of --reloads */
	struct event *proxy_ended, *reloaded;
	char *said; /* owned: the line of a reload, as far as it is there */
	size_t n_said;
	/* others */
	struct gateway_log log;
	struct intake *intake;
	char intake_at[ADDR_TEXT + sizeof("[]:65535")]; /* as it is bound: ADDR:PORT */
	struct change *first, *last;                    /* the first one is being made */
	struct event *clock;                            /* of that one, and of the start */
	uint64_t start_until_us;                        /* the proxy has to answer before that; 0: it was not asked */
	struct ceiling *own; /* the policy of --policy, above which no secret can be had (own.c) */
	int code;            /* of exit */
};

/* options.c: OPTIONS_GO_ON, or an exit code. */
int gateway_options_parse(int argc, char **argv, struct gateway_options *out);

/* Alone changes the state. */
void gateway_enter(struct gateway *g, enum gateway_state next);

/* Something that the rest depends on has failed: said, and all of it ends. */
void gateway_fail(struct gateway *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- proxy.c ---- */

bool proxy_start(struct gateway *g);
void proxy_signal(const struct gateway *g, int number);
void proxy_close(struct gateway *g);

/* Options of cage-proxy that a policy is judged by: those behind "--", and what it has from us. */
void proxy_add_given(const struct gateway *g, struct words *w);

/* ---- behind.c ---- */

/* How many workers have not taken the last change; UINT64_MAX: it can't be said now. */
typedef void behind_told(struct gateway *g, uint64_t n);

/* Asks the admin port; told is called later, from the loop. False: it can't be asked. */
bool behind_ask(struct gateway *g, behind_told *told);

/* ---- own.c: the gateway's own policy, that of --policy ---- */

/* At the start, before the proxy: whoever is there already has to lie below it. False with a message. */
bool own_open(struct gateway *g);

enum own_taken {
	OWN_SAME,
	OWN_NEW,   /* it is another one, and all lie below it */
	OWN_SHUTS, /* some sandbox had more than it lets anybody have: that one is shut, which the proxy has to be told */
	OWN_UNREAD /* it can't be read: the one before stays, and the proxy may have another; said */
};

/* The proxy has taken it anew. */
enum own_taken own_take(struct gateway *g);

/* A sandbox that was not in its place when a new one was taken: it is shut, if it has more. */
void own_judge(struct gateway *g, const char *id);

/* ---- judge.c: what a policy of a request may not have, before it is written anywhere ---- */

/* path: where its text stands as a file. False with errors, as lines. */
bool judge_policy(const struct gateway *g, struct slice text, const char *path, struct words *errors);

#endif
