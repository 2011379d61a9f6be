/* The files of a keeper: the first byte says which. Promises: a result that was read is written and read again as the same, and a
 * spec has no more in it than there may be. */
#include "orchestrator/keeper/pull.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/keeper/spec.h"
#include "tests/fuzz/fuzz.h"

static void read_result(struct slice input)
{
	struct result r, again;
	char text[LIMIT_KEEPER_RESULT], other[LIMIT_KEEPER_RESULT];
	if (!result_parse(input, &r))
		return;
	size_t n = result_format(&r, text);
	PROMISE(result_parse(slice_of(text, n), &again));
	PROMISE(result_format(&again, other) == n && memcmp(text, other, n) == 0);
}

static void read_spec(struct slice input)
{
	struct spec s;
	const char *why;
	if (spec_parse(input, &s, &why)) {
		PROMISE(s.dir && s.id[0] && s.n_ports <= LIMIT_KEEPER_PUBLISHED && s.cmd.n < LIMIT_INSIDE_WORDS);
		for (size_t i = 0; i < s.n_ports; i++)
			PROMISE(s.ports[i].port != 0);
	}
	spec_free(&s);
}

static void read_list(struct slice input)
{
	struct pull_listed e;
	if (!pull_entry_parse(input, &e))
		return;
	PROMISE(e.name.len > 0 && slice_find(e.name, '/') == e.name.len && !slice_eq(e.name, SLICE("..")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct slice input = slice_of(data + 1, size - 1);
	switch (data[0] % 3) {
	case 0:
		read_result(input);
		break;
	case 1:
		read_spec(input);
		break;
	default:
		read_list(input);
	}
	return 0;
}
