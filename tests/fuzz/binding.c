/* Frames of bindings. Promises: what is read can be written, and is the same bytes then; what waits for more never waits for
 * more than the longest frame; and a table of them, however they come, finds what was put last. */
#include "core/net/binding.h"

#include "core/net/binding_table.h"
#include "tests/fuzz/fuzz.h"

#define ROOM 4 /* of the table: less than most inputs have */

static void must_be_the_same(const struct binding *b, struct slice frame)
{
	unsigned char again[BINDING_FRAME];
	size_t len = binding_write(b, again);
	PROMISE(slice_eq(slice_of(again, len), frame));
}

static void must_be_found(struct binding_table *t, const struct binding *b)
{
	struct addr found[LIMIT_ANSWERS];
	uint32_t life_s = 0;
	enum cage_status st = binding_table_put(t, b, 1);
	if (b->kind != BINDING_GIVEN) {
		PROMISE(st == CAGE_OK && binding_table_addresses(t, b->name, 1, found) >= b->n);
		return;
	}
	PROMISE(st == CAGE_OK || st == CAGE_ELIMIT);
	if (st != CAGE_OK)
		return;
	PROMISE(slice_eq(binding_table_name(t, &b->addrs[0], 1), b->name));
	PROMISE(binding_table_given(t, b->name, 1, found, &life_s) && addr_eq(found, &b->addrs[0]));
	PROMISE(life_s == b->life_s);
}

static void count(void *arg, const struct binding *b)
{
	size_t *n = arg;
	PROMISE(b->n > 0 && b->life_s > 0);
	++*n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice copy = fuzz_copy(slice_of(data, size)), input = copy;
	struct binding_table *t = binding_table_new(ROOM);
	struct binding b;
	size_t n = 0;
	PROMISE(t);
	for (;;) {
		struct slice before = input;
		enum cage_status st = binding_read(&input, &b);
		PROMISE(st == CAGE_OK || (slice_eq(before, input) && (st == CAGE_AGAIN || st == CAGE_EPROTO)));
		PROMISE(st != CAGE_AGAIN || input.len < BINDING_FRAME);
		if (st != CAGE_OK)
			break;
		must_be_the_same(&b, slice_head(before, before.len - input.len));
		must_be_found(t, &b);
	}
	binding_table_each(t, 1, count, &n);
	PROMISE(n <= ROOM);
	binding_table_free(&t);
	fuzz_free(&copy);
	return 0;
}
