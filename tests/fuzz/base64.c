/* Bytes of a tool call in JSON, both ways. Promises: what is taken is base64 with its padding and nothing else, it has as many bytes
 * as it says, and what is given back of any bytes is those bytes. */
#include "orchestrator/service/tool_results.h"
#include "tests/fuzz/fuzz.h"

static struct slice string_of(const json_t *value)
{
	return slice_of(json_string_value(value), json_string_length(value));
}

static void decode(struct slice text)
{
	size_t n = SIZE_MAX, pad = 0;
	char *bytes = base64_decode(text, &n);
	if (!bytes)
		return;
	for (size_t i = 0; i < text.len; i++) {
		pad += text.ptr[i] == '=';
		PROMISE(text.ptr[i] == '=' || (pad == 0 && ascii_base64((unsigned char)text.ptr[i]) >= 0));
	}
	PROMISE(text.len % 4 == 0 && pad <= 2 && n == text.len / 4 * 3 - pad);
	free(bytes);
}

static void encode(struct slice bytes)
{
	json_t *result = json_object();
	tool_put_bytes(result, "x", bytes);
	const json_t *text = json_object_get(result, "x"), *coded = json_object_get(result, "x_base64");
	PROMISE(!text != !coded);
	if (text) {
		PROMISE(slice_eq(string_of(text), bytes));
	} else {
		size_t n = 0;
		char *back = base64_decode(string_of(coded), &n);
		PROMISE(back && slice_eq(slice_of(back, n), bytes));
		free(back);
	}
	json_decref(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size));
	decode(input);
	encode(input);
	fuzz_free(&input);
	return 0;
}
