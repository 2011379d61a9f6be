/* Formats become a Hyperscan database, and bytes become one again. Hyperscan reads the same patterns as PCRE2 but for
 * look-around and back references, which it refuses. */
#include "inspectors/scan/set.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"

#define AROUND 2 /* bytes that a match looks at beyond itself: one before it, a line end behind it */
#define MAX_LEN (LIMIT_SCAN_TAIL - AROUND)
#define WHY_ROOM 256
#define REQUEST_ARENA MIB(64) /* for the patterns as C strings */

/* A set of formats as Hyperscan wants it. */
struct request {
	size_t n;
	const char **patterns; /* NUL-terminated */
	unsigned *flags, *ids;
};

/* A format that is not taken, and why. */
struct fault {
	size_t at;
	char why[WHY_ROOM];
};

enum text { TEXT_PATTERN, TEXT_FILTER };

static struct slice text_of(const struct format *f, enum text which)
{
	return which == TEXT_FILTER && f->filter.len > 0 ? f->filter : f->pattern;
}

static enum cage_status request_make(struct request *r, const struct format *formats, size_t n, enum text which,
				     struct arena *arena)
{
	r->n = n;
	r->patterns = arena_array(arena, n, sizeof(*r->patterns));
	r->flags = arena_array(arena, n, sizeof(*r->flags));
	r->ids = arena_array(arena, n, sizeof(*r->ids));
	if (!r->patterns || !r->flags || !r->ids)
		return CAGE_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct slice text = text_of(&formats[i], which);
		char *pattern = arena_alloc(arena, text.len + 1);
		if (!pattern)
			return CAGE_ENOMEM;
		memcpy(pattern, text.ptr, text.len);
		r->patterns[i] = pattern;
		r->flags[i] = HS_FLAG_DOTALL | (formats[i].caseless ? HS_FLAG_CASELESS : 0u);
		r->ids[i] = (unsigned)i;
	}
	return CAGE_OK;
}

static enum cage_status refuse(struct fault *fault, size_t at, const char *why)
{
	fault->at = at;
	snprintf(fault->why, sizeof(fault->why), "%s", why);
	return CAGE_EPROTO;
}

static enum cage_status refuse_as(struct fault *fault, size_t at, hs_compile_error_t *error)
{
	enum cage_status status = refuse(fault, at, error->message);
	hs_free_compile_error(error);
	return status;
}

/* PCRE2 is asked too, so that no format fails when it first has a candidate. */
static enum cage_status check_exact(const struct format *f, size_t at, struct fault *fault)
{
	const char *why;
	struct confirm *exact = confirm_new(f, &why);
	if (!exact)
		return refuse(fault, at, why);
	confirm_free(&exact);
	return CAGE_OK;
}

static enum cage_status measure(struct format *f, const struct request *r, size_t at, struct fault *fault)
{
	hs_compile_error_t *error = NULL;
	hs_expr_info_t *info = NULL;
	if (strlen(r->patterns[at]) != f->pattern.len)
		return refuse(fault, at, "NUL byte in the pattern");
	if (hs_expression_info(r->patterns[at], r->flags[at], &info, &error) != HS_SUCCESS)
		return refuse_as(fault, at, error);
	f->max_len = info->max_width;
	free(info);
	if (f->max_len == UINT_MAX)
		return refuse(fault, at, "matches have no greatest length: give each repeat an upper bound");
	if (f->max_len <= MAX_LEN)
		return check_exact(f, at, fault);
	(void)refuse(fault, at, "");
	snprintf(fault->why, sizeof(fault->why), "matches may have %u bytes, more than %d", f->max_len, MAX_LEN);
	return CAGE_EPROTO;
}

static enum cage_status compile(const struct request *r, hs_database_t **database, struct fault *fault)
{
	hs_compile_error_t *error = NULL;
	if (hs_compile_multi(r->patterns, r->flags, r->ids, (unsigned)r->n, HS_MODE_STREAM, NULL, database, &error) ==
	    HS_SUCCESS)
		return CAGE_OK;
	return refuse_as(fault, error->expression < 0 ? 0 : (size_t)error->expression, error);
}

static enum cage_status serialise(const hs_database_t *database, struct arena *arena, struct slice *bytes)
{
	char *serialised = NULL;
	size_t len = 0;
	if (hs_serialize_database(database, &serialised, &len) != HS_SUCCESS)
		return CAGE_ENOMEM;
	*bytes = arena_dup(arena, slice_of(serialised, len));
	free(serialised);
	return bytes->ptr ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status measure_all(struct format *formats, size_t n, struct arena *scratch, struct fault *fault)
{
	struct request r;
	enum cage_status status = request_make(&r, formats, n, TEXT_PATTERN, scratch);
	for (size_t i = 0; i < n && status == CAGE_OK; i++)
		status = measure(&formats[i], &r, i, fault);
	return status;
}

static enum cage_status compile_to_bytes(const struct format *formats, size_t n, struct arena *scratch,
					 struct arena *arena, struct slice *bytes, struct fault *fault)
{
	struct request r;
	hs_database_t *database = NULL;
	enum cage_status status = request_make(&r, formats, n, TEXT_FILTER, scratch);
	if (status == CAGE_OK)
		status = compile(&r, &database, fault);
	if (status == CAGE_OK)
		status = serialise(database, arena, bytes);
	hs_free_database(database);
	return status;
}

enum cage_status scan_set_compile(struct format *formats, size_t n, struct arena *arena, struct slice *bytes,
				  size_t *at, const char **why)
{
	struct fault fault = {0};
	struct arena scratch;
	*bytes = SLICE_NONE;
	if (n == 0)
		return CAGE_OK;
	arena_init(&scratch, REQUEST_ARENA);
	enum cage_status status = measure_all(formats, n, &scratch, &fault);
	if (status == CAGE_OK)
		status = compile_to_bytes(formats, n, &scratch, arena, bytes, &fault);
	arena_free(&scratch);
	if (status != CAGE_EPROTO)
		return status;
	*at = fault.at;
	*why = arena_dup(arena, slice_of(fault.why, strlen(fault.why) + 1)).ptr;
	return *why ? CAGE_EPROTO : CAGE_ENOMEM;
}

/* ---- loading ---- */

static enum cage_status compile_anew(const struct scan_set *set, hs_database_t **database)
{
	struct fault fault;
	struct request r;
	struct arena scratch;
	arena_init(&scratch, REQUEST_ARENA);
	enum cage_status status = request_make(&r, set->formats, set->n, TEXT_FILTER, &scratch);
	if (status == CAGE_OK)
		status = compile(&r, database, &fault);
	arena_free(&scratch);
	return status;
}

/* Hyperscan refuses bytes of another version, of another kind of processor, and broken ones. */
static bool load_database(struct scan_set *set, struct slice bytes)
{
	if (hs_deserialize_database(bytes.ptr, bytes.len, &set->database) != HS_SUCCESS &&
	    compile_anew(set, &set->database) != CAGE_OK)
		return false;
	return hs_alloc_scratch(set->database, &set->scratch) == HS_SUCCESS;
}

struct scan_set *scan_set_load(const struct format *formats, size_t n, struct slice bytes)
{
	struct scan_set *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->formats = formats;
	set->n = n;
	set->exact = calloc(n ? n : 1, sizeof(struct confirm *));
	for (size_t i = 0; i < n; i++)
		if (formats[i].max_len + AROUND > set->reach)
			set->reach = formats[i].max_len + AROUND;
	if (!set->exact || (n > 0 && !load_database(set, bytes)))
		scan_set_free(&set);
	return set;
}

struct confirm *scan_set_exact(const struct scan_set *set, size_t format)
{
	const char *why;
	if (!set->exact[format])
		set->exact[format] = confirm_new(&set->formats[format], &why);
	return set->exact[format];
}

void scan_set_free(struct scan_set **set)
{
	if (!*set)
		return;
	for (size_t i = 0; (*set)->exact && i < (*set)->n; i++)
		confirm_free(&(*set)->exact[i]);
	free((*set)->exact);
	hs_free_scratch((*set)->scratch);
	hs_free_database((*set)->database);
	free(*set);
	*set = NULL;
}
