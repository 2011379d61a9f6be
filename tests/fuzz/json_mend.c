/* An answer of Azure with letters that no text can have. Promises: what could be read before reads the same, strings are UTF-8 without
 * NUL, and once more changes nothing. */
#include "orchestrator/azure/json_mend.h"

#include <jansson.h>
#include <stdlib.h>

#include "core/base/utf8_letter.h"
#include "tests/fuzz/fuzz.h"

static json_t *read(struct slice s)
{
	return json_loadb(s.len ? s.ptr : "", s.len, JSON_DECODE_ANY, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice mended = fuzz_copy(slice_of(data, size)), again;
	json_t *before = read(mended), *after;
	json_mend((char *)mended.ptr, mended.len);
	after = read(mended);
	PROMISE(!before || (after && json_equal(before, after)));
	if (json_is_string(after))
		PROMISE(strlen(json_string_value(after)) == json_string_length(after));
	again = fuzz_copy(mended);
	json_mend((char *)again.ptr, again.len);
	PROMISE(slice_eq(again, mended));
	json_decref(before);
	json_decref(after);
	fuzz_free(&again);
	fuzz_free(&mended);
	return 0;
}
