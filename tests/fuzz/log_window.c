/* The log of a container in two looks, the second of which may begin anywhere in the first: the first line of the input says where.
 * Promises: no line is told twice, none is left out, and nothing is told that is not there. */
#include "orchestrator/azure/log_window.h"

#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

struct told {
	size_t lines, bytes;
};

static bool count(void *arg, struct slice line)
{
	struct told *t = arg;
	t->lines++;
	t->bytes += line.len;
	return true;
}

static size_t lines_in(struct slice text)
{
	size_t n = 0;
	while (text.len > 0) {
		slice_cut(&text, '\n');
		n++;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), rest = input;
	struct log_window w = {0};
	struct told told = {0};
	uint64_t from = 0;
	slice_to_u64(slice_cut(&rest, '\n'), 1 << 20, &from);
	const struct slice first = slice_head(rest, rest.len / 2);
	PROMISE(log_window_take(&w, first, false, count, &told));
	PROMISE(told.bytes <= first.len && told.lines <= lines_in(first));
	PROMISE(log_window_take(&w, rest, true, count, &told)); /* the same log, grown: nothing of it twice */
	PROMISE(told.bytes <= rest.len && told.lines == lines_in(rest));
	PROMISE(log_window_take(&w, slice_from(rest, from), true, count,
				&told)); /* whatever that is: it must not crash */
	log_window_free(&w);
	fuzz_free(&input);
	return 0;
}
