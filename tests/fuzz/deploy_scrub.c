/* A secure value and an answer of Azure: the first line of the input is the value, the rest the answer. Promises: the value is in no
 * text, name or number of the answer afterwards, and what is to be removed lies in the resource group. */
#include <stdlib.h>
#include <strings.h>

#include "core/base/limits.h"
#include "orchestrator/azure/json_scrub.h"
#include "orchestrator/deploy/deploy.h"
#include "tests/fuzz/fuzz.h"

#define BASE "/subscriptions/s/resourceGroups/g/providers/"

static void check_clean(const json_t *value, const char *secret)
{
	size_t i;
	const char *key;
	json_t *item;
	char *number = json_is_number(value) ? json_number_text(value) : NULL;
	if (json_is_string(value))
		PROMISE(!strstr(json_string_value(value), secret));
	PROMISE(!number || !strstr(number, secret));
	free(number);
	json_array_foreach(value, i, item)
	{
		check_clean(item, secret);
	}
	json_object_foreach((json_t *)value, key, item)
	{
		PROMISE(!strstr(key, secret));
		check_clean(item, secret);
	}
}

static void check_id(const json_t *value)
{
	static const struct deploy_options options = {.azure = {.subscription = "s", .group = "g"}};
	const struct deploy d = {.options = &options};
	const char *id = json_string_value(json_object_get(value, "id"));
	if (!id || !id_is_within(&d, id))
		return;
	PROMISE(strncasecmp(id, BASE, strlen(BASE)) == 0);
	PROMISE(!strstr(id, "..") || !strstr(id, "/.."));
	PROMISE(!strpbrk(id, "?#%\\ \r\n") && strlen(id) < LIMIT_ARM_URL / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size)), rest = input;
	const struct slice first = slice_cut(&rest, '\n');
	struct secure s = {0};
	json_t *secret = json_stringn(first.ptr, first.len);
	json_t *answer = json_loadb(rest.len ? rest.ptr : "", rest.len, JSON_DECODE_ANY, NULL);
	/* one that is like what stands in its place may come to be there by that */
	const bool is_plain = slice_find(first, '(') == first.len && slice_find(first, ')') == first.len;
	if (secret && answer && is_plain && strlen(json_string_value(secret)) == first.len && secure_add(&s, secret) &&
	    !json_is_number(answer)) { /* one alone is in nothing that could hold another */
		PROMISE(first.len >= LIMIT_DEPLOY_SECURE_LEAST);
		PROMISE(secure_scrub(&s, answer));
		check_clean(answer, json_string_value(secret));
		check_id(answer);
	}
	json_decref(secret);
	json_decref(answer);
	secure_free(&s);
	fuzz_free(&input);
	return 0;
}
