/* The admin port: /healthz, /readyz, /metrics and what a program adds. Served by the master; never reachable by the agent
 * through cage. */
#ifndef CAGE_PROC_ADMIN_H
#define CAGE_PROC_ADMIN_H

#include "core/base/text.h"
#include "core/net/loop.h"

/* What the port tells, asked of the master. */
struct admin_source {
	bool (*is_ready)(void *arg);
	void (*metrics)(void *arg, struct text *t);
	const char *ca_file; /* path of ca.pem; NULL: the program has none */
	void *arg;
};

struct admin;

/* source stays valid. NULL without memory. */
struct admin *admin_new(struct loop *l, int listen_fd, const struct admin_source *source);

/* Stops listening; answers under way are finished. */
void admin_free(struct admin **a);

#endif
