/* Lists of the resource group, and what in them is of this --state. */
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

/* False after it was said. */
static bool take_page(struct arm *arm, struct pages *p, const char *type, pages_item *each, void *arg)
{
	static struct arm_call call;
	arm_begin(arm, &call, "GET", p->next, NULL, ARM_REPEATS);
	arm_await(arm, &call);
	const bool is_good = arm_is_good(&call);
	const char *why = is_good ? pages_take(p, call.answer, each, arg) : call.message;
	if (why)
		say("%s can't be listed: %s%s%s", type, call.code, call.code[0] ? ": " : "", why);
	arm_free(arm, &call);
	return !why;
}

bool aci_pages(struct arm *arm, const char *type, const char *version, pages_item *each, void *arg)
{
	static struct pages pages;
	char where[LIMIT_ARM_URL];
	bool ok = true;
	arm_path(arm, type, version, where);
	for (pages_begin(&pages, where); ok && pages.next[0];)
		ok = take_page(arm, &pages, type, each, arg);
	return ok;
}

bool aci_is_of(const struct aci_options *o, const json_t *item)
{
	const json_t *tags = json_object_get(item, "tags");
	const char *state = json_string_value(json_object_get(tags, ACI_TAG_STATE));
	return state && strcmp(state, o->state) == 0;
}
