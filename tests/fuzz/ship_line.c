/* Lines of a decision log as cage-ship takes them into its array, and the small file that says how far it was. Promises: what counts as a
 * good line is one object of JSON in one line that begins and ends as cage writes it, so that commas and brackets around it make an
 * array; it is the same with its hash behind it and no other. A place that is read has its numbers in order, and is that of its file alone.
 *
 * Input: one byte that says what follows. */
#include "core/base/limits.h"
#include "orchestrator/ship/ship.h"
#include "tests/fuzz/fuzz.h"

#define END (SHIP_HASH + 2)

static struct audit_hasher hasher;

/* The fuzzer will never guess a hash: it gets a line with the right one. */
static struct slice with_hash(struct slice body, char *out, size_t room)
{
	struct audit_chain chain = audit_chain_start();
	struct text t = text_in(out, room);
	PROMISE(audit_chain_add(&chain, &hasher, &t, 0, &body));
	return slice_of(out, t.len - 1);
}

static void try_line(struct slice line)
{
	struct audit_chain after;
	if (!line_is_good(&hasher, line, &after))
		return;
	PROMISE(line.len <= LIMIT_SHIP_LINE);
	PROMISE(slice_starts(line, SLICE("{\"schema\":\"cage.log/1\",")) && slice_ends(line, SLICE("\"}")));
	PROMISE(memcmp(line.ptr + line.len - END, after.prev, SHIP_HASH) == 0);
	PROMISE(slice_find(line, '\n') == line.len);
}

static void try_body(struct slice body)
{
	static char room[LIMIT_SHIP_LINE + 1024];
	if (body.len > LIMIT_SHIP_LINE - 1024 || slice_find(body, '\n') != body.len)
		return;
	struct slice line = fuzz_copy(with_hash(body, room, sizeof(room)));
	try_line(line);
	((char *)line.ptr)[line.len - 3] ^= 1; /* another hash: whatever it was, it is none now */
	struct audit_chain after;
	PROMISE(!line_is_good(&hasher, line, &after));
	fuzz_free(&line);
}

static void try_place(struct slice text)
{
	struct place p;
	const bool ok = place_parse(text, 1, 2, &p);
	PROMISE(!ok || (p.hash_at <= p.offset && p.offset <= INT64_MAX));
	struct place other;
	PROMISE(!ok || !place_parse(text, 1, 3, &other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), rest = input;
	if (!hasher.ctx)
		PROMISE(audit_hasher_init(&hasher));
	const uint64_t what = fuzz_number(&rest, 1) % 3;
	if (what == 0)
		try_line(rest);
	else if (what == 1)
		try_body(rest);
	else
		try_place(rest);
	fuzz_free(&input);
	return 0;
}
