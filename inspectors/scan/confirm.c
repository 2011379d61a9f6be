/* PCRE2 with JIT where there is one, within limits. A partial match is what tells that bytes are missing.
 *
 * A value is judged as long as the pattern can make it, and when it does not pass also as short as it can: bytes that
 * were put behind a secret must not hide it. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "inspectors/scan/confirm.h"

#include <pcre2.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "inspectors/scan/checks.h"

#define WHY_ROOM 128

struct confirm {
	const struct format *format;
	pcre2_code *longest;
	pcre2_code *shortest; /* compiled when it is first needed */
	pcre2_match_context *bounds;
	pcre2_match_data *data;
};

static pcre2_code *compile(const struct format *f, uint32_t options, const char **why)
{
	static char text[WHY_ROOM];
	int error;
	PCRE2_SIZE at;
	options |= PCRE2_DOTALL | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_USE_OFFSET_LIMIT;
	if (f->caseless)
		options |= PCRE2_CASELESS;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)f->pattern.ptr, f->pattern.len, options, &error, &at, NULL);
	if (!code) {
		pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
		*why = text;
		return NULL;
	}
	/* Without JIT the match is slower, not different. */
	(void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
	return code;
}

struct confirm *confirm_new(const struct format *format, const char **why)
{
	*why = "no memory";
	struct confirm *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->format = format;
	c->bounds = pcre2_match_context_create(NULL);
	c->data = pcre2_match_data_create(2, NULL);
	if (c->bounds && c->data)
		c->longest = compile(format, 0, why);
	if (!c->longest) {
		confirm_free(&c);
		return NULL;
	}
	pcre2_set_match_limit(c->bounds, LIMIT_SCAN_STEPS);
	pcre2_set_depth_limit(c->bounds, LIMIT_SCAN_DEPTH);
	return c;
}

static void read_match(const struct confirm *c, struct slice bytes, int groups, struct confirm_match *match)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(c->data);
	size_t group = groups > 1 && at[2] != PCRE2_UNSET ? 1 : 0;
	match->start = at[0];
	match->end = at[1];
	match->value = slice_of(bytes.ptr + at[2 * group], at[2 * group + 1] - at[2 * group]);
}

static enum confirm_result run(struct confirm *c, const pcre2_code *code, const struct confirm_window *w,
			       struct confirm_match *match)
{
	uint32_t options = w->is_end ? 0 : PCRE2_PARTIAL_HARD;
	pcre2_set_offset_limit(c->bounds, w->limit);
	int groups = pcre2_match(code, (PCRE2_SPTR)w->bytes.ptr, w->bytes.len, w->from, options, c->data, c->bounds);
	if (groups == PCRE2_ERROR_NOMATCH)
		return CONFIRM_NONE;
	if (groups < 0 && groups != PCRE2_ERROR_PARTIAL)
		return CONFIRM_BOUNDED;
	read_match(c, w->bytes, groups == 0 ? 2 : groups, match); /* 0: more groups than two, which do not matter */
	return groups == PCRE2_ERROR_PARTIAL ? CONFIRM_MORE : CONFIRM_MATCH;
}

/* The same match, as short as can be. CONFIRM_NONE: there is no shorter one. */
static enum confirm_result find_shorter(struct confirm *c, const struct confirm_window *w,
					const struct confirm_match *longest, struct confirm_match *match)
{
	const char *why;
	if (!c->shortest && !(c->shortest = compile(c->format, PCRE2_UNGREEDY, &why)))
		return CONFIRM_BOUNDED;
	struct confirm_window at = *w;
	at.from = at.limit = longest->start;
	enum confirm_result result = run(c, c->shortest, &at, match);
	return result == CONFIRM_MATCH && match->end >= longest->end ? CONFIRM_NONE : result;
}

enum confirm_result confirm_find(struct confirm *c, const struct confirm_window *w, struct confirm_match *match,
				 bool *passes)
{
	struct confirm_match shorter;
	enum confirm_result result = run(c, c->longest, w, match);
	*passes = result == CONFIRM_MATCH && value_passes(c->format, match->value);
	if (result != CONFIRM_MATCH || *passes)
		return result;
	result = find_shorter(c, w, match, &shorter);
	if (result == CONFIRM_MORE || result == CONFIRM_BOUNDED)
		return result;
	*passes = result == CONFIRM_MATCH && value_passes(c->format, shorter.value);
	if (*passes)
		*match = shorter;
	return CONFIRM_MATCH;
}

void confirm_free(struct confirm **c)
{
	if (!*c)
		return;
	pcre2_match_data_free((*c)->data);
	pcre2_match_context_free((*c)->bounds);
	pcre2_code_free((*c)->shortest);
	pcre2_code_free((*c)->longest);
	free(*c);
	*c = NULL;
}
