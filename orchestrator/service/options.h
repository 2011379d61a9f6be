/* The command line of cage serve. */
#ifndef CAGE_SERVICE_OPTIONS_H
#define CAGE_SERVICE_OPTIONS_H

#include "core/base/limits.h"

enum serve_action { SERVE_RUN, SERVE_CHECK, SERVE_NEW_TOKEN, SERVE_BACKEND, SERVE_EXIT, SERVE_WRONG };

struct serve_options {
	const char *config, *state; /* NULL: not given */
	const char *listen[LIMIT_SERVE_LISTENERS];
	int n_listen;
	const char *backend; /* of SERVE_BACKEND, ... */
	char **words;        /* ... and what its program is told; ends with NULL */
};

enum serve_action serve_options_read(int argc, char **argv, struct serve_options *out);

#endif
