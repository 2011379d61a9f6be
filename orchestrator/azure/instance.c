/* Instance views, read member by member. */
#include "orchestrator/azure/instance.h"

#include <math.h>
#include <string.h>

#include "core/base/limits.h"
#include "orchestrator/azure/when.h"

static uint64_t time_of(const json_t *value)
{
	uint64_t us = 0;
	if (json_is_string(value) && !when_parse(slice_of(json_string_value(value), json_string_length(value)), &us))
		us = 0;
	return us;
}

static void lower(uint64_t *to, uint64_t us)
{
	if (us > 0 && (*to == 0 || us < *to))
		*to = us;
}

static void raise_to(uint64_t *to, uint64_t us)
{
	if (us > *to)
		*to = us;
}

/* ---- events ---- */

static bool is_named(const json_t *object, const char *name)
{
	const char *its = json_string_value(json_object_get(object, "name"));
	return its && strcmp(its, name) == 0;
}

static void take_event(const json_t *event, struct instance_times *out, bool is_asked)
{
	const uint64_t first = time_of(json_object_get(event, "firstTimestamp"));
	if (is_named(event, "Pulling"))
		lower(&out->pulling, first);
	else if (is_named(event, "Pulled"))
		raise_to(&out->pulled, first);
	else if (is_named(event, "Started") && is_asked)
		lower(&out->started, first);
}

static void take_container(const json_t *container, const char *asked, struct instance_times *out)
{
	const json_t *view = json_object_get(json_object_get(container, "properties"), "instanceView");
	const json_t *event, *events = json_object_get(view, "events");
	const uint64_t since = time_of(json_object_get(json_object_get(view, "currentState"), "startTime"));
	size_t i;
	const bool is_asked = is_named(container, asked);
	lower(&out->begun, since);
	if (is_asked && since > 0)
		out->started = since;
	json_array_foreach(events, i, event)
	{
		if (i == LIMIT_ACI_EVENTS)
			return;
		take_event(event, out, is_asked && since == 0);
	}
}

void instance_times(const json_t *group, const char *container, struct instance_times *out)
{
	static const char *const lists[] = {"initContainers", "containers"};
	const json_t *properties = json_object_get(group, "properties"), *one;
	size_t at;
	*out = (struct instance_times){0};
	for (size_t i = 0; i < 2; i++)
		json_array_foreach(json_object_get(properties, lists[i]), at, one) take_container(one, container, out);
}

/* ---- what it was given ---- */

/* In parts of one; 0: it is no number, or none that there is. */
static uint64_t parts_of(const json_t *requests, const char *key, double parts)
{
	const double n = json_number_value(json_object_get(requests, key));
	return n > 0 && n <= LIMIT_ACI_SHARE ? (uint64_t)llround(n * parts) : 0;
}

bool instance_share(const json_t *group, struct instance_share *out)
{
	const json_t *one, *properties = json_object_get(group, "properties");
	size_t i;
	*out = (struct instance_share){0};
	json_array_foreach(json_object_get(properties, "containers"), i, one)
	{
		const json_t *resources = json_object_get(json_object_get(one, "properties"), "resources");
		const json_t *requests = json_object_get(resources, "requests");
		out->cpu_hundredths += parts_of(requests, "cpu", 100);
		out->memory_thousandths += parts_of(requests, "memoryInGB", 1000);
	}
	return out->cpu_hundredths > 0 && out->memory_thousandths > 0 && out->cpu_hundredths <= LIMIT_ACI_SHARE * 100 &&
	       out->memory_thousandths <= LIMIT_ACI_SHARE * 1000;
}

const json_t *instance_state(const json_t *group, const char *container)
{
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json_object_get(group, "properties"), "containers"), i, one)
	{
		if (is_named(one, container))
			return json_object_get(json_object_get(json_object_get(one, "properties"), "instanceView"),
					       "currentState");
	}
	return NULL;
}

int instance_exit_code(const json_t *state)
{
	const json_t *code = json_object_get(state, "exitCode");
	const json_int_t n = json_integer_value(code);
	return json_is_integer(code) && n >= 0 && n <= 255 ? (int)n : INSTANCE_CODE_UNKNOWN;
}
