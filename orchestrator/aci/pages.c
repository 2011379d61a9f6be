/* Lists of ARM, a page after the other. */
#include <stdio.h>

#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

bool aci_pages(struct arm *arm, const char *type, const char *version, aci_item *each, void *arg)
{
	static struct arm_call call;
	char where[LIMIT_ARM_URL];
	bool ok = true;
	arm_path(arm, type, version, where);
	for (unsigned page = 0; ok && where[0] && page < LIMIT_ACI_PAGES; page++) {
		size_t i;
		json_t *item;
		arm_begin(arm, &call, "GET", where, NULL, ARM_REPEATS);
		arm_await(arm, &call);
		ok = arm_is_good(&call);
		if (!ok)
			say("%s can't be listed: %s%s%s", type, call.code, call.code[0] ? ": " : "", call.message);
		json_array_foreach(json_object_get(call.answer, "value"), i, item) each(arg, item);
		const char *next = json_string_value(json_object_get(call.answer, "nextLink"));
		snprintf(where, sizeof(where), "%s", next ? next : "");
		arm_free(arm, &call);
	}
	return ok && !where[0];
}

bool aci_is_of(const struct aci_options *o, const json_t *item)
{
	const json_t *tags = json_object_get(item, "tags");
	const char *state = json_string_value(json_object_get(tags, ACI_TAG_STATE));
	return state && strcmp(state, o->state) == 0;
}
