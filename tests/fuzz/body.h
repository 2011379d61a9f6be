/* A body of the API, for the targets that check one. Promises of every such check: each thing that is wrong has a sentence, and a
 * pointer that is one; and as many are named as there may be. */
#ifndef CAGE_TESTS_FUZZ_BODY_H
#define CAGE_TESTS_FUZZ_BODY_H

#include <jansson.h>

#include "core/base/limits.h"
#include "tests/fuzz/fuzz.h"

static inline void check_body_errors(const json_t *errors)
{
	size_t i;
	json_t *error;
	json_array_foreach(errors, i, error)
	{
		const char *pointer = json_string_value(json_object_get(error, "pointer"));
		PROMISE(json_string_length(json_object_get(error, "detail")) > 0);
		PROMISE(!pointer || pointer[0] == '/' || pointer[0] == '\0');
	}
	PROMISE(json_array_size(errors) <= LIMIT_SERVE_ERRORS);
}

/* good: what is promised of a body in which check() finds nothing wrong. */
static inline void check_body(const uint8_t *data, size_t size, void (*check)(const json_t *, json_t *),
			      void (*good)(const json_t *))
{
	json_t *body = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	json_t *errors = json_array();
	if (body) {
		check(body, errors);
		check_body_errors(errors);
		if (json_array_size(errors) == 0)
			good(body);
	}
	json_decref(errors);
	json_decref(body);
}

#endif
