/* Formats become a Hyperscan database, and bytes become one again. Hyperscan reads the same patterns as PCRE2 but for
 * look-around and back references, which it refuses. */
#include "inspectors/scan/set.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "inspectors/scan/near.h"

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

static enum cage_status request_init(struct request *r, size_t room, struct arena *arena)
{
	r->n = 0;
	r->patterns = arena_array(arena, room, sizeof(*r->patterns));
	r->flags = arena_array(arena, room, sizeof(*r->flags));
	r->ids = arena_array(arena, room, sizeof(*r->ids));
	return r->patterns && r->flags && r->ids ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status request_add(struct request *r, const struct format *f, size_t id, enum text which,
				    struct arena *arena)
{
	struct slice text = text_of(f, which);
	char *pattern = arena_alloc(arena, text.len + 1);
	if (!pattern)
		return CAGE_ENOMEM;
	memcpy(pattern, text.ptr, text.len);
	r->patterns[r->n] = pattern;
	r->flags[r->n] = HS_FLAG_DOTALL | (f->caseless ? HS_FLAG_CASELESS : 0u);
	r->ids[r->n++] = (unsigned)id;
	return CAGE_OK;
}

static enum scan_pass pass_of(const struct format *f)
{
	return f->worded ? SCAN_NEAR_WORDS : SCAN_EVERYWHERE;
}

/* Have they the same candidates? */
static bool same_filter(const struct format *a, const struct format *b)
{
	if (a->assigned || b->assigned)
		return a->assigned && b->assigned;
	return pass_of(a) == pass_of(b) && a->caseless == b->caseless &&
	       slice_eq(text_of(a, TEXT_FILTER), text_of(b, TEXT_FILTER));
}

/* The first format that has the same filter as formats[i]; i: itself. */
static size_t first_same(const struct format *formats, size_t i)
{
	size_t first = 0;
	while (!same_filter(&formats[first], &formats[i]))
		first++;
	return first;
}

static bool is_wanted(const struct format *formats, size_t i, enum scan_pass pass)
{
	return !formats[i].assigned && pass_of(&formats[i]) == pass && first_same(formats, i) == i;
}

/* Of those for one pass, what Hyperscan looks for. */
static enum cage_status request_make(struct request *r, const struct format *formats, size_t n, enum scan_pass pass,
				     struct arena *arena)
{
	enum cage_status status = request_init(r, n, arena);
	for (size_t i = 0; i < n && status == CAGE_OK; i++)
		if (is_wanted(formats, i, pass))
			status = request_add(r, &formats[i], i, TEXT_FILTER, arena);
	return status;
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
	return refuse_as(fault, error->expression < 0 ? 0 : r->ids[error->expression], error);
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
	enum cage_status status = request_init(&r, n, scratch);
	for (size_t i = 0; i < n && status == CAGE_OK; i++) {
		status = request_add(&r, &formats[i], i, TEXT_PATTERN, scratch);
		if (status == CAGE_OK)
			status = measure(&formats[i], &r, i, fault);
	}
	return status;
}

/* The database for one pass; *database stays NULL when there is no format for it. */
static enum cage_status compile_pass(const struct format *formats, size_t n, enum scan_pass pass, struct arena *scratch,
				     hs_database_t **database, struct fault *fault)
{
	struct request r;
	enum cage_status status = request_make(&r, formats, n, pass, scratch);
	return status == CAGE_OK && r.n > 0 ? compile(&r, database, fault) : status;
}

static enum cage_status compile_to_bytes(const struct format *formats, size_t n, enum scan_pass pass,
					 struct arena *scratch, struct arena *arena, struct slice *bytes,
					 struct fault *fault)
{
	hs_database_t *database = NULL;
	enum cage_status status = compile_pass(formats, n, pass, scratch, &database, fault);
	if (status == CAGE_OK && database)
		status = serialise(database, arena, bytes);
	hs_free_database(database);
	return status;
}

enum cage_status scan_set_compile(struct format *formats, size_t n, struct arena *arena, struct scan_bytes *bytes,
				  size_t *at, const char **why)
{
	struct fault fault = {0};
	struct arena scratch;
	*bytes = (struct scan_bytes){0};
	if (n == 0)
		return CAGE_OK;
	arena_init(&scratch, REQUEST_ARENA);
	enum cage_status status = measure_all(formats, n, &scratch, &fault);
	for (enum scan_pass p = 0; p < SCAN_PASSES && status == CAGE_OK; p++)
		status = compile_to_bytes(formats, n, p, &scratch, arena, &bytes->of[p], &fault);
	arena_free(&scratch);
	if (status != CAGE_EPROTO)
		return status;
	*at = fault.at;
	*why = arena_dup(arena, slice_of(fault.why, strlen(fault.why) + 1)).ptr;
	return *why ? CAGE_EPROTO : CAGE_ENOMEM;
}

/* ---- loading ---- */

static enum cage_status compile_anew(const struct scan_set *set, enum scan_pass pass, hs_database_t **database)
{
	struct fault fault;
	struct arena scratch;
	arena_init(&scratch, REQUEST_ARENA);
	enum cage_status status = compile_pass(set->formats, set->n, pass, &scratch, database, &fault);
	arena_free(&scratch);
	return status;
}

/* Hyperscan refuses bytes of another version, of another kind of processor, and broken ones. The scratch grows to serve
 * all databases. */
static bool load_database(struct scan_set *set, enum scan_pass pass, struct slice bytes)
{
	hs_database_t **database = &set->databases[pass];
	if (bytes.len == 0)
		return true;
	if (hs_deserialize_database(bytes.ptr, bytes.len, database) != HS_SUCCESS &&
	    compile_anew(set, pass, database) != CAGE_OK)
		return false;
	return hs_alloc_scratch(*database, &set->scratch) == HS_SUCCESS;
}

static bool load_databases(struct scan_set *set, const struct scan_bytes *bytes)
{
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		if (!load_database(set, p, bytes->of[p]))
			return false;
	return true;
}

/* Chains each format to the next one with the same candidates. */
static bool link_same(struct scan_set *set)
{
	set->next_same = calloc(set->n ? set->n : 1, sizeof(*set->next_same));
	if (!set->next_same)
		return false;
	set->first_assigned = (unsigned)set->n;
	for (size_t i = set->n; i-- > 0;) {
		size_t next = i + 1;
		if (set->formats[i].assigned)
			set->first_assigned = (unsigned)i;
		while (next < set->n && !same_filter(&set->formats[i], &set->formats[next]))
			next++;
		set->next_same[i] = (unsigned)next;
	}
	return true;
}

struct scan_set *scan_set_load(const struct format *formats, size_t n, const struct scan_bytes *bytes)
{
	struct scan_set *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->formats = formats;
	set->n = n;
	set->reach = SCAN_BEFORE;
	set->exact = calloc(n ? n : 1, sizeof(struct confirm *));
	for (size_t i = 0; i < n; i++)
		if (formats[i].max_len + AROUND > set->reach)
			set->reach = formats[i].max_len + AROUND;
	if (!set->exact || !link_same(set) || !load_databases(set, bytes))
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
	free((*set)->next_same);
	hs_free_scratch((*set)->scratch);
	for (enum scan_pass p = 0; p < SCAN_PASSES; p++)
		hs_free_database((*set)->databases[p]);
	free(*set);
	*set = NULL;
}
