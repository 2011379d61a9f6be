/* What is done without a sandbox: groups that are left are listed and removed, and whether Azure can be spoken to is tried. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/aci/aci.h"

int aci_remove(const struct aci_options *o, const char *id)
{
	static struct arm arm;
	static struct operation op;
	char path[LIMIT_ARM_URL];
	if (!sandbox_id_is_good(slice_str(id))) {
		say("%s: no id of a sandbox", id);
		return EXIT_WRONG;
	}
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	aci_group_path(&arm, id, "", path);
	operation_begin(&arm, &op, "DELETE", path, NULL, ARM_REPEATS);
	operation_await(&arm, &op);
	bool is_gone = op.end == OPERATION_GOOD;
	if (!is_gone)
		say("the group cage-%s can't be removed: %s", id, op.message);
	operation_free(&arm, &op);
	if (aci_is_split(o))
		is_gone = split_remove(o, &arm.web, id) && is_gone;
	arm_close(&arm);
	return is_gone ? 0 : EXIT_FAILED;
}

/* ---- lists ---- */

static void print_ours(const struct aci_options *o, const json_t *page)
{
	size_t i;
	json_t *group;
	json_array_foreach(json_object_get(page, "value"), i, group)
	{
		const json_t *tags = json_object_get(group, "tags");
		const char *id = json_string_value(json_object_get(tags, ACI_TAG_ID));
		const char *state = json_string_value(json_object_get(tags, ACI_TAG_STATE));
		if (id && state && strcmp(state, o->state) == 0 && sandbox_id_is_good(slice_str(id)))
			puts(id);
	}
}

/* A page after the other. False with a message: the list is not whole. */
static bool list(struct arm *arm, const struct aci_options *o)
{
	static struct arm_call call;
	char where[LIMIT_ARM_URL];
	bool ok = true;
	arm_path(arm, ACI_TYPE, ACI_VERSION, where);
	for (unsigned page = 0; ok && where[0] && page < LIMIT_ACI_PAGES; page++) {
		arm_begin(arm, &call, "GET", where, NULL, ARM_REPEATS);
		arm_await(arm, &call);
		ok = arm_is_good(&call);
		if (!ok)
			say("the groups can't be listed: %s", call.message);
		print_ours(o, call.answer);
		const char *next = json_string_value(json_object_get(call.answer, "nextLink"));
		snprintf(where, sizeof(where), "%s", next ? next : "");
		arm_free(arm, &call);
	}
	return ok && !where[0] && fflush(stdout) == 0;
}

int aci_list(const struct aci_options *o)
{
	static struct arm arm;
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	const bool ok = list(&arm, o) && (!aci_is_split(o) || split_list(o, &arm.web));
	arm_close(&arm);
	return ok ? 0 : EXIT_FAILED;
}

/* ---- a trial ---- */

int aci_check(const struct aci_options *o)
{
	static struct arm arm;
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	arm_path(&arm, ACI_TYPE, ACI_VERSION, path);
	arm_begin(&arm, &call, "GET", path, NULL, ARM_REPEATS);
	arm_await(&arm, &call);
	bool ok = arm_is_good(&call);
	if (!ok)
		say("resource group %s: %s%s%s", o->azure.group, call.code, call.code[0] ? ": " : "", call.message);
	arm_free(&arm, &call);
	if (aci_is_split(o))
		ok = split_check(o, &arm.web) && ok;
	arm_close(&arm);
	return ok ? 0 : EXIT_FAILED;
}
