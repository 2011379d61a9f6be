/* What a create asks for, as JSON. Promises beside those of body.h: what is found good has the types that the service takes for granted. */
#include "orchestrator/service/create.h"
#include "tests/fuzz/body.h"

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
	check_body(data, size, create_check, check_good);
	return 0;
}
