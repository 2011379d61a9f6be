/* What cage-inside says is in a directory, where names are the agent's. Promises: each word is one entry, none makes two, and each
 * has a name that is text, one of the types, and a size. */
#include "orchestrator/service/tool_results.h"
#include "orchestrator/service/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check(const json_t *entry, struct slice word)
{
	const json_t *name = json_object_get(entry, "name");
	struct slice text = slice_of(json_string_value(name), json_string_length(name));
	struct slice type = slice_str(json_string_value(json_object_get(entry, "type")));
	struct slice kind = slice_cut(&word, ' ');
	slice_cut(&word, ' ');
	PROMISE(json_is_string(name) && utf8_is_good(text));
	PROMISE(!utf8_is_good(word) || slice_eq(text, word));
	PROMISE(slice_eq(type, SLICE("file")) == slice_eq(kind, SLICE("f")));
	PROMISE(json_integer_value(json_object_get(entry, "size")) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), rest = input;
	json_t *list = tool_entries(input);
	size_t n = 0;
	while (rest.len > 0) {
		struct slice word = slice_cut(&rest, '\0');
		if (word.len > 0)
			check(json_array_get(list, n++), word);
	}
	PROMISE(json_array_size(list) == n);
	json_decref(list);
	fuzz_free(&input);
	return 0;
}
