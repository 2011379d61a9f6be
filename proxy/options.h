/* The command line of cage-proxy. */
#ifndef CAGE_PROXY_OPTIONS_H
#define CAGE_PROXY_OPTIONS_H

#include "core/base/limits.h"
#include "core/net/listener.h"
#include "core/proc/command_line.h"
#include "proxy/entrance.h"

struct options {
	const char *policy;
	const char *ca_dir;    /* NULL: the default place */
	const char *keys;      /* directory of placeholder.key and fingerprint.key; NULL: that of the CA */
	const char *log;       /* a file, or "-" */
	uint64_t log_max;      /* bytes of it; 0: any */
	const char *auth;      /* NULL: no Proxy-Authorization, unless there are ... */
	const char *sandboxes; /* ... many sandboxes, in this directory */
	const char *sandbox;
	char bindings[108]; /* path of the socket on which cage-dns tells its answers; empty: none */
	unsigned workers;
	struct listen_spec listen[LIMIT_LISTENERS];
	enum entrance entrances[LIMIT_LISTENERS]; /* of each of them */
	size_t n_listen;
	struct addr_port never[LIMIT_NEVER]; /* listeners of others, which are never dialled either */
	size_t n_never;
	int watch;       /* a packet socket; -1: none */
	int reloads;     /* where the result of each is told; -1: nowhere */
	const char *kit; /* directory of what http://cage.internal/ serves; NULL: only its page */
	bool has_out;
	uint64_t out;         /* with has_out: bytes that may be sent to servers */
	bool vault_variables; /* secrets of key vaults are in our environment */
	bool has_admin;
	struct listen_spec admin;
};

/* Prints help, version or what is wrong itself. */
enum options_action options_parse(int argc, char **argv, struct options *out);

#endif
