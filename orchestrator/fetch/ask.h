/* What cage-fetch is asked for: one JSON object. */
#ifndef CAGE_FETCH_ASK_H
#define CAGE_FETCH_ASK_H

#include <jansson.h>

#include "core/base/slice.h"

struct ask {
	json_t *json;       /* owns all that follows but the body */
	const char *method; /* upper case letters */
	const char *url;
	const char *proxy, *ca_file; /* NULL: none, that of the system */
	json_t *headers;             /* an object of texts; NULL: none */
	char *body;                  /* NULL: none */
	size_t body_len;
	uint64_t timeout_ms, max_bytes;
};

/* False: *why is a static sentence. To be freed in both cases. */
bool ask_parse(struct slice text, struct ask *out, const char **why);
void ask_free(struct ask *a);

#endif
