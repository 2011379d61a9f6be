/* A label of a query. Promises: both of its parts are good by themselves, and put together they are what came in. */
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/create.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), name, value;
	if (label_parse(input, &name, &value)) {
		PROMISE(label_name_is_good(name) && label_value_is_good(value));
		PROMISE(name.len + 1 + value.len == input.len && input.ptr[name.len] == '=');
		PROMISE(name.len <= LIMIT_SERVE_LABEL && value.len <= LIMIT_SERVE_LABEL);
		PROMISE(slice_eq(slice_head(input, name.len), name) && slice_ends(input, value));
		PROMISE(slice_find(name, '\0') == name.len && slice_find(value, '\0') == value.len);
	}
	fuzz_free(&input);
	return 0;
}
