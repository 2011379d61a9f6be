/* The command line of cage-dns. */
#ifndef CAGE_DNS_OPTIONS_H
#define CAGE_DNS_OPTIONS_H

#include "core/base/limits.h"
#include "core/net/listener.h"
#include "core/policy/policy.h"
#include "core/proc/command_line.h"

struct options {
	const char *policy;
	const char *ca_dir; /* NULL: the default place */
	const char *keys;   /* directory of fingerprint.key; NULL: that of the CA */
	const char *log;    /* a file, or "-" */
	uint64_t log_max;   /* bytes of it; 0: any */
	bool log_turns;     /* then another one is begun */
	const char *sandbox;
	struct listen_spec listen[LIMIT_LISTENERS];
	size_t n_listen;
	struct policy_resolver upstream[LIMIT_DNS_SERVERS]; /* asked before those of the policy */
	size_t n_upstream;
	char upstream_names[LIMIT_DNS_SERVERS][LIMIT_HOST];
	int reloads; /* where the result of each is told; -1: nowhere */
	bool has_bindings;
	struct listen_spec bindings;
	bool has_admin;
	struct listen_spec admin;
};

/* Prints help, version or what is wrong itself. */
enum options_action options_parse(int argc, char **argv, struct options *out);

#endif
