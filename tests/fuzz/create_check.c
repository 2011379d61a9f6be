/* What a create asks for, as JSON. Promises: each thing that is wrong has a sentence, and a pointer that is one; as many are named as
 * there may be; and what is found good has the types that the service takes for granted. */
#include "core/base/limits.h"
#include "orchestrator/service/create.h"
#include "tests/fuzz/fuzz.h"

static void check_error(const json_t *error)
{
	const char *pointer = json_string_value(json_object_get(error, "pointer"));
	PROMISE(json_string_length(json_object_get(error, "detail")) > 0);
	PROMISE(!pointer || pointer[0] == '/' || pointer[0] == '\0');
}

static void check_texts(const json_t *list, size_t most)
{
	size_t i;
	json_t *item;
	PROMISE(!list || json_is_array(list));
	PROMISE(json_array_size(list) <= most);
	json_array_foreach(list, i, item)
	{
		PROMISE(json_is_string(item));
	}
}

static void check_map_of_texts(const json_t *map, size_t most)
{
	const char *key;
	json_t *item;
	PROMISE(!map || json_is_object(map));
	PROMISE(json_object_size(map) <= most);
	json_object_foreach((json_t *)map, key, item)
	{
		PROMISE(json_is_string(item));
	}
}

static void check_good(const json_t *body)
{
	PROMISE(json_is_object(body));
	check_texts(json_object_get(body, "command"), LIMIT_SERVE_WORDS);
	check_texts(json_object_get(body, "tools"), TOOLS);
	check_texts(json_object_get(body, "blocked_commands"), LIMIT_SERVE_PATTERNS);
	check_map_of_texts(json_object_get(body, "env"), LIMIT_SERVE_VARIABLES);
	check_map_of_texts(json_object_get(body, "files"), LIMIT_SERVE_START_FILES);
	check_map_of_texts(json_object_get(body, "labels"), LIMIT_SERVE_LABELS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *body = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	json_t *errors = json_array();
	size_t i;
	json_t *error;
	if (body) {
		create_check(body, errors);
		json_array_foreach(errors, i, error)
		{
			check_error(error);
		}
		PROMISE(json_array_size(errors) <= LIMIT_SERVE_ERRORS);
		if (json_array_size(errors) == 0)
			check_good(body);
	}
	json_decref(errors);
	json_decref(body);
	return 0;
}
