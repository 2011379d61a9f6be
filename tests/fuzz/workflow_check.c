/* What a workflow asks for, as JSON. Promises beside those of body.h: of what is found good all needs are there, none leads back, and no path leads elsewhere. */
#include "orchestrator/service/create.h"
#include "orchestrator/service/workflow_check.h"
#include "tests/fuzz/body.h"

/* Steps whose needs are all done are done, again and again: in the end all are. */
static void check_order(const json_t *steps)
{
	bool done[LIMIT_WORKFLOW_STEPS] = {false};
	size_t left = json_array_size(steps), i, k;
	json_t *step, *id;
	for (size_t before = left + 1; left > 0 && left < before;) {
		before = left;
		json_array_foreach(steps, i, step)
		{
			bool is_ready = !done[i];
			json_array_foreach(json_object_get(step, "needs"), k, id)
			{
				size_t needed = workflow_find_step(steps, json_string_value(id));
				PROMISE(needed < json_array_size(steps));
				is_ready = is_ready && done[needed];
			}
			done[i] |= is_ready;
			left -= is_ready;
		}
	}
	PROMISE(left == 0);
}

static void check_paths(const json_t *list, const char *key)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		const json_t *path = json_object_get(item, key);
		PROMISE(!path || file_path_is_good(slice_of(json_string_value(path), json_string_length(path))));
	}
}

static void check_good(const json_t *body)
{
	const json_t *steps = json_object_get(body, "steps");
	size_t i;
	json_t *step;
	PROMISE(json_array_size(steps) >= 1 && json_array_size(steps) <= LIMIT_WORKFLOW_STEPS);
	check_order(steps);
	json_array_foreach(steps, i, step)
	{
		PROMISE(workflow_find_step(steps, json_string_value(json_object_get(step, "id"))) == i);
		check_paths(json_object_get(step, "artifacts"), "path");
		check_paths(json_object_get(step, "inputs"), "to");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_body(data, size, workflow_check, check_good);
	return 0;
}
