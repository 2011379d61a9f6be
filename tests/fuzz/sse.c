/* Server-sent events, in pieces whose size is the first byte. Promises: the same events, whatever the pieces are; the data of an
 * event has no line break of another kind than LF; what is longer than the bound is refused and not cut. */
#include "orchestrator/client/sse.h"
#include "tests/fuzz/fuzz.h"

struct story {
	uint64_t events, sum;
	enum cage_status result;
};

static void add(struct story *s, struct slice part)
{
	s->sum = s->sum * 31 + part.len;
	for (size_t i = 0; i < part.len; i++)
		s->sum = s->sum * 31 + (unsigned char)part.ptr[i];
}

/* An event called "end" ends the reading, as it does for the client. */
static bool take(void *arg, struct slice name, struct slice data)
{
	struct story *s = arg;
	PROMISE(name.len > 0 && name.len <= LIMIT_CLIENT_EVENT_NAME);
	PROMISE(data.len < LIMIT_CLIENT_EVENT && slice_find(data, '\r') == data.len);
	s->events++;
	add(s, name);
	add(s, data);
	return !slice_eq(name, SLICE("end"));
}

static struct story read_all(struct slice input, size_t piece)
{
	struct sse events;
	struct story s = {.result = CAGE_OK};
	PROMISE(sse_init(&events));
	while (input.len > 0 && s.result == CAGE_OK) {
		struct slice part = fuzz_copy(fuzz_take(&input, piece));
		s.result = sse_feed(&events, part, take, &s);
		fuzz_free(&part);
	}
	sse_free(&events);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct slice input = slice_of(data + 1, size - 1);
	struct story whole = read_all(input, SIZE_MAX), pieces = read_all(input, 1 + (size_t)data[0]);
	PROMISE(whole.events == pieces.events && whole.sum == pieces.sum && whole.result == pieces.result);
	return 0;
}
