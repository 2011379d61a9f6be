/* Answers of an external inspector. Promises: what is taken for an answer has a text as its id and one of the verdicts, and
 * all that it would do to a request is to set or remove fields that are no framing, with names that are tokens and values that stay
 * within their line.
 *
 * Input: one line. */
#include <strings.h>

#include "inspectors/external_private.h"
#include "tests/fuzz/fuzz.h"

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static void name_must_be_harmless(const char *name, size_t len)
{
	static const char *const never[] = {
		"host",    "content-length", "transfer-encoding", "connection",      "trailer", "te",
		"upgrade", "expect",         "keep-alive",        "content-encoding"};
	PROMISE(len > 0 && strspn(name, TOKEN) == len);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		PROMISE(strcasecmp(name, never[i]) != 0);
	PROMISE(strncasecmp(name, "proxy-", 6) != 0 && strncasecmp(name, "x-cage-", 7) != 0);
}

/* Nothing in UTF-8 that is a control character stays hidden in one that is not. */
static void value_must_be_harmless(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)value[i];
		PROMISE((c >= 0x20 || c == '\t') && c != 0x7f && c < 0xc4);
	}
	PROMISE(len == 0 || (value[0] != ' ' && value[len - 1] != ' '));
}

static void changes_must_be_harmless(const struct external_answer *a)
{
	const char *name;
	json_t *value;
	size_t i;
	json_object_foreach(a->set, name, value)
	{
		name_must_be_harmless(name, strlen(name));
		value_must_be_harmless(json_string_value(value), json_string_length(value));
	}
	json_array_foreach(a->remove, i, value)
	{
		name_must_be_harmless(json_string_value(value), json_string_length(value));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice line = fuzz_copy(slice_of(data, size));
	struct external_answer a;
	if (external_answer_parse(line, &a) == CAGE_OK) {
		PROMISE(json_is_object(a.document) && a.id.ptr);
		PROMISE(a.verdict == EXTERNAL_PASS || a.verdict == EXTERNAL_FLAG || a.verdict == EXTERNAL_BLOCK ||
			a.verdict == EXTERNAL_DONE);
		changes_must_be_harmless(&a);
		external_answer_free(&a);
	} else {
		PROMISE(!a.document);
	}
	fuzz_free(&line);
	return 0;
}
