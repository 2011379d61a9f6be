/* The admin port: /healthz, /readyz, /metrics, /ca.pem. Served by the master; never reachable through the proxy. */
#ifndef CAGE_PROXY_ADMIN_H
#define CAGE_PROXY_ADMIN_H

#include "core/base/text.h"
#include "core/net/loop.h"

/* What the port tells, asked of the master. */
struct admin_source {
	bool (*is_ready)(void *arg);
	void (*metrics)(void *arg, struct text *t);
	const char *ca_file; /* path of ca.pem */
	void *arg;
};

struct admin;

/* source stays valid. NULL without memory. */
struct admin *admin_new(struct loop *l, int listen_fd, const struct admin_source *source);

/* Stops listening; answers under way are finished. */
void admin_free(struct admin **a);

#endif
