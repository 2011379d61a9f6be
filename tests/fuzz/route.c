/* Paths and queries of the API. Promises: percent escapes are undone once and never make a NUL; a path that fits has an id that is
 * one, and the file that it names is the same however it is escaped. */
#include "core/base/escape.h"
#include "core/base/text.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/api.h"
#include "tests/fuzz/fuzz.h"

#define PATTERN "/api/v1/sandboxes/{id}/files/{path}"

static struct request request;

static void put_escaped(struct text *t, const char *s)
{
	static const char hex[] = "0123456789abcdef";
	for (; *s; s++) {
		text_put_char(t, '%');
		text_put_char(t, hex[(unsigned char)*s >> 4]);
		text_put_char(t, hex[*s & 0xf]);
	}
}

static void check_path(struct slice path)
{
	static char escaped[3 * (sizeof(request.path) + sizeof(request.sandbox)) + sizeof(PATTERN)];
	struct text t = text_in(escaped, sizeof(escaped));
	if (!route_fits(PATTERN, path, &request))
		return;
	struct slice id = fuzz_copy(slice_str(request.sandbox)), file = fuzz_copy(slice_str(request.path));
	PROMISE(sandbox_id_is_good(id) && file.len > 0 && file.len < path.len);
	text_put(&t, SLICE("/api/v1/sandboxes/"));
	put_escaped(&t, request.sandbox);
	text_put(&t, SLICE("/files/"));
	put_escaped(&t, request.path);
	PROMISE(text_ok(&t) && route_fits(PATTERN, text_slice(&t), &request));
	PROMISE(slice_eq(slice_str(request.sandbox), id) && slice_eq(slice_str(request.path), file));
	fuzz_free(&id);
	fuzz_free(&file);
}

static bool has_nul(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (escape_percent_value(s, i) == 0)
			return true;
	return false;
}

static void check_query(struct slice query)
{
	request.query = query;
	const char *value = query_value(&request, "label"), *all = request_decode(&request, query);
	PROMISE(!value || strlen(value) <= query.len);
	PROMISE(!all == has_nul(query));
	PROMISE(!all || memchr(query.ptr, '%', query.len) || slice_eq(slice_str(all), query));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice target = slice_of(data, size);
	if (size == 0 || size > LIMIT_SERVE_HEAD || memchr(data, '\0', size))
		return 0; /* no head brings these */
	struct slice copy = fuzz_copy(target), query = copy, path = slice_cut(&query, '?');
	arena_init(&request.arena, MIB(1));
	check_path(path);
	if (query.len > 0)
		check_query(query);
	arena_free(&request.arena);
	request = (struct request){0};
	fuzz_free(&copy);
	return 0;
}
