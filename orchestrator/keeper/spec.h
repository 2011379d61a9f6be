/* What the keeper of a sandbox is told: words NAME=VALUE, each ended by a NUL byte or the end. The service has written them,
 * from what a client has asked for. */
#ifndef CAGE_KEEPER_SPEC_H
#define CAGE_KEEPER_SPEC_H

#include <netinet/in.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "orchestrator/words.h"

/* A port of the room that can be connected to from outside. */
struct spec_port {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at; /* where the keeper listens; port 0: any that is free */
	uint16_t port;
};

struct spec {
	char id[65];
	struct words run, cmd; /* options of cage run; the command, or none */
	struct words env;      /* NAME=VALUE: variables of the room */
	struct words pod;      /* options of cage-pod, which makes the room then, ... */
	struct words aci;      /* ... or of cage-aci; none of both: cage run does */
	char *dir;             /* where the command begins */
	uint64_t wall_ms;      /* 0: no end */
	uint64_t stand_ms;     /* it stands so long for FRAME_BEGIN, and ends then; 0: it begins by itself */
	uint64_t grace_ms;     /* from SIGTERM to the end of the room */
	uint64_t output;       /* bytes that are kept */
	bool keep;
	struct words artifacts; /* files that are taken out when the command has succeeded, ... */
	uint64_t artifact_bytes[LIMIT_WORKFLOW_ARTIFACTS]; /* ... and how long each may be */
	struct spec_port ports[LIMIT_KEEPER_PUBLISHED];
	size_t n_ports;
};

/* False: it is none, and *why is a static sentence. To be freed in both cases. */
bool spec_parse(struct slice bytes, struct spec *out, const char **why);

/* The same of the file `spec`, in the directory that we work in. */
bool spec_read(struct spec *out, const char **why);
void spec_free(struct spec *s);

/* The value of an option of cage run, the last one; NULL: it is not there. */
const char *spec_option(const struct spec *s, const char *name);

#endif
