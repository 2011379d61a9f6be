/* What cage-fetch is asked for. Promises: nothing gets through that could end a line of a head or is no URL of the web. */
#include "orchestrator/fetch/ask.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ask a;
	const char *why;
	if (ask_parse(slice_of(data, size), &a, &why)) {
		const char *name;
		json_t *value;
		PROMISE(strncmp(a.url, "http", 4) == 0 && !strpbrk(a.url, "\r\n ") && !strpbrk(a.method, "\r\n "));
		json_object_foreach(a.headers, name, value)
		{
			PROMISE(!strpbrk(name, "\r\n: ") && !strpbrk(json_string_value(value), "\r\n"));
		}
	}
	ask_free(&a);
	return 0;
}
