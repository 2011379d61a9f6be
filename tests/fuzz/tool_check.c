/* The arguments of a tool call, as JSON: one for each tool by the first byte. Promises: what is wrong has a place below "/arguments";
 * what is good has the values that the call is made of; and what is logged is bounded, and of a URL neither a user nor a query. */
#include "orchestrator/service/tool_results.h"
#include "tests/fuzz/fuzz.h"

static const char *const needed[] = {"command", "path", "path", NULL, "url"};

static void check_errors(const json_t *errors)
{
	size_t i;
	json_t *error;
	json_array_foreach(errors, i, error)
	{
		const char *pointer = json_string_value(json_object_get(error, "pointer"));
		PROMISE(json_string_length(json_object_get(error, "detail")) > 0);
		PROMISE(!pointer || strncmp(pointer, "/arguments", 10) == 0);
	}
	PROMISE(json_array_size(errors) <= LIMIT_SERVE_ERRORS);
}

static void check_good(enum tool t, const json_t *arguments)
{
	const json_t *coded = json_object_get(arguments, "content_base64");
	size_t n;
	if (needed[t])
		PROMISE(json_string_length(json_object_get(arguments, needed[t])) > 0);
	if (t == TOOL_WRITE)
		PROMISE(!coded != !json_object_get(arguments, "content"));
	if (coded) {
		char *bytes = base64_decode(slice_str(json_string_value(coded)), &n);
		PROMISE(bytes);
		free(bytes);
	}
}

static void check_detail(enum tool t, const json_t *arguments)
{
	char detail[LIMIT_SERVE_DETAIL + 1];
	memset(detail, 'x', sizeof(detail));
	tool_detail(t, arguments, detail);
	struct slice text = slice_of(detail, strnlen(detail, sizeof(detail)));
	PROMISE(text.len <= LIMIT_SERVE_DETAIL);
	if (t != TOOL_HTTP || !json_is_string(json_object_get(arguments, "url")))
		return;
	const char *authority = strstr(detail, "://");
	PROMISE(!strpbrk(detail, "?#"));
	PROMISE(authority || slice_eq(text, SLICE(".")));
	if (authority)
		PROMISE(!memchr(authority + 3, '@', strcspn(authority + 3, "/\\")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	enum tool t = (enum tool)(data[0] % (TOOL_NONE + 1));
	json_t *arguments = json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
	json_t *errors = json_array();
	if (json_is_object(arguments)) {
		tool_check(t, arguments, errors);
		check_errors(errors);
		if (t != TOOL_NONE && json_array_size(errors) == 0)
			check_good(t, arguments);
		check_detail(t, arguments);
		(void)tool_denied(NULL, arguments);
	}
	json_decref(errors);
	json_decref(arguments);
	return 0;
}
