/* The loop waits while a command is matched, so that the time of all patterns together is bounded. The limits of PCRE2 are for each
 * place in the text at which a match may begin, and count no bytes that are passed over: a callout before each item of a pattern
 * looks at the clock instead. It is that of our own work, since others on this machine are no reason to deny a command. */
#include "orchestrator/service/blocked.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/limits.h"

#define CALLOUTS 16 /* between looks at the clock: each is a call of the kernel */

struct blocked {
	pcre2_match_context *context;
	pcre2_match_data *data;
	uint64_t until_us;
	unsigned callouts;
	size_t n;
	pcre2_code *codes[]; /* n */
};

/* ---- time ---- */

static uint64_t worked_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int on_callout(pcre2_callout_block *at, void *arg)
{
	struct blocked *b = arg;
	(void)at;
	return ++b->callouts % CALLOUTS == 0 && worked_us() >= b->until_us ? PCRE2_ERROR_CALLOUT : 0;
}

/* ---- patterns ---- */

static pcre2_code *compile(struct slice pattern, int *error, size_t *at)
{
	return pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, PCRE2_AUTO_CALLOUT, error, at, NULL);
}

bool pattern_is_good(struct slice pattern, char *why, size_t room)
{
	int error;
	size_t at, size = 0;
	PCRE2_UCHAR what[128] = "";
	pcre2_code *code = compile(pattern, &error, &at);
	if (!code) {
		pcre2_get_error_message(error, what, sizeof(what));
		snprintf(why, room, "is no regular expression: %s, at byte %zu", (const char *)what, at);
		return false;
	}
	bool ok = pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size) == 0 && size <= LIMIT_SERVE_REGEX_SIZE;
	if (!ok)
		snprintf(why, room, "is too large a regular expression: its repeats make it %zu bytes", size);
	pcre2_code_free(code);
	return ok;
}

static bool compile_all(struct blocked *b, const json_t *patterns)
{
	int error;
	size_t i, at;
	json_t *item;
	json_array_foreach(patterns, i, item)
	{
		b->codes[i] = compile(slice_of(json_string_value(item), json_string_length(item)), &error, &at);
		if (!b->codes[i])
			return false;
		b->n++;
	}
	return true;
}

struct blocked *blocked_new(const json_t *patterns)
{
	struct blocked *b = calloc(1, sizeof(*b) + json_array_size(patterns) * sizeof(pcre2_code *));
	if (!b)
		return NULL;
	b->context = pcre2_match_context_create(NULL);
	b->data = pcre2_match_data_create(1, NULL);
	if (!b->context || !b->data || !compile_all(b, patterns)) {
		blocked_free(&b);
		return NULL;
	}
	pcre2_set_depth_limit(b->context, LIMIT_SERVE_REGEX_DEPTH);
	pcre2_set_callout(b->context, on_callout, b);
	return b;
}

void blocked_free(struct blocked **b)
{
	if (!*b)
		return;
	for (size_t i = 0; i < (*b)->n; i++)
		pcre2_code_free((*b)->codes[i]);
	pcre2_match_data_free((*b)->data);
	pcre2_match_context_free((*b)->context);
	free(*b);
	*b = NULL;
}

/* ---- a command ---- */

bool blocked_has(struct blocked *b, struct slice command)
{
	if (!b)
		return true;
	b->until_us = worked_us() + LIMIT_SERVE_REGEX_CPU_US;
	for (size_t i = 0; i < b->n; i++) {
		int rc = pcre2_match(b->codes[i], (PCRE2_SPTR)command.ptr, command.len, 0, 0, b->data, b->context);
		if (rc != PCRE2_ERROR_NOMATCH || worked_us() >= b->until_us)
			return true;
	}
	return false;
}
