/* What a container that stood ready is given. Promises: what is written is read as it was; what is read lies in the room; good records
 * are all of them what their kinds have to be, and are walked through to their end. */
#include "core/base/limits.h"
#include "orchestrator/inside/given.h"
#include "tests/fuzz/fuzz.h"

static char room[4096];

static void walk(struct slice records)
{
	struct given_record r;
	const struct slice all = records;
	size_t marks = 0;
	while (given_next(&records, &r)) {
		PROMISE(r.bytes.len == 0 || (r.bytes.ptr >= all.ptr && r.bytes.ptr + r.bytes.len <= all.ptr + all.len));
		marks += r.kind == GIVEN_ONCE;
		PROMISE((r.kind != GIVEN_FILE && r.kind != GIVEN_KEY && r.kind != GIVEN_ONCE) ||
			(r.path.len > 0 && r.path.ptr[0] == '/' && r.path.len < LIMIT_GIVEN_PATH));
		PROMISE(r.kind == GIVEN_FILE || slice_find(r.bytes, '\0') == r.bytes.len);
	}
	PROMISE(records.len == 0 && marks == 1);
}

/* The same bytes as records, in a text of our own. */
static void write_and_read(struct slice input)
{
	struct given g = {0};
	struct slice path = fuzz_take(&input, 8), records;
	given_add(&g, GIVEN_WORD, SLICE_NONE, input);
	given_add(&g, GIVEN_FILE, path, input);
	const size_t n = g.n;
	char *text = given_text(&g);
	PROMISE(text);
	const bool is_open = given_open(slice_str(text), room, sizeof(room), &records);
	PROMISE(is_open == (n <= sizeof(room)));
	if (is_open) {
		struct given_record r;
		PROMISE(records.len == n && given_next(&records, &r) && r.kind == GIVEN_WORD &&
			slice_eq(r.bytes, input));
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), records;
	if (given_open(input, room, sizeof(room), &records))
		PROMISE(records.len <= sizeof(room));
	if (given_is_good(input))
		walk(input);
	write_and_read(input);
	fuzz_free(&input);
	return 0;
}
