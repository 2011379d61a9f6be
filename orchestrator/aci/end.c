/* What is done without a sandbox: groups that are left are listed and removed, and whether Azure can be spoken to is tried. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/aci/standby.h"

bool aci_remove_one(struct arm *arm, const char *id)
{
	static struct operation op;
	char path[LIMIT_ARM_URL];
	aci_group_path(arm, id, "", path);
	operation_begin(arm, &op, "DELETE", path, NULL, ARM_REPEATS);
	operation_await(arm, &op);
	const bool is_gone = op.end == OPERATION_GOOD;
	if (!is_gone)
		say("the group cage-%s can't be removed: %s", id, op.message);
	operation_free(arm, &op);
	return is_gone;
}

/* Names can be chosen by everybody: what is not known to be ours stays. *is_there: it has to be removed. False: it was said why not. */
static bool look_whose(struct arm *arm, const struct aci_options *o, const char *id, bool *is_there)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	aci_group_path(arm, id, "", path);
	arm_begin(arm, &call, "GET", path, NULL, ARM_REPEATS);
	arm_await(arm, &call);
	*is_there = arm_is_good(&call);
	const char *tag = json_string_value(json_object_get(json_object_get(call.answer, "tags"), ACI_TAG_ID));
	const bool is_ours = tag && strcmp(tag, id) == 0 && aci_is_of(o, call.answer);
	const bool ok = *is_there ? is_ours : call.status == 404;
	if (!ok)
		say("the group cage-%s is not removed: %s", id,
		    *is_there ? "by its tags it is none of this --state" : call.message);
	arm_free(arm, &call);
	return ok;
}

int aci_remove(const struct aci_options *o, const char *id)
{
	static struct arm arm;
	bool is_there;
	if (!sandbox_id_is_good(slice_str(id))) {
		say("%s: no id of a sandbox", id);
		return EXIT_WRONG;
	}
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	bool is_gone = look_whose(&arm, o, id, &is_there) && (!is_there || aci_remove_one(&arm, id));
	if (aci_is_split(o))
		is_gone = split_remove(o, &arm.web, id) && is_gone;
	arm_close(&arm);
	return is_gone ? 0 : EXIT_FAILED;
}

/* ---- lists ---- */

struct told {
	const struct aci_options *options;
	aci_each *each;
	void *arg;
};

/* One whose name is another was made by somebody else, whatever its tags say: it could not be removed by its id. */
static bool has_name_of(const json_t *group, const char *id)
{
	const char *name = json_string_value(json_object_get(group, "name"));
	return name && strncmp(name, "cage-", 5) == 0 && strcmp(name + 5, id) == 0;
}

static void tell_ours(void *arg, const json_t *group)
{
	const struct told *t = arg;
	const char *id = json_string_value(json_object_get(json_object_get(group, "tags"), ACI_TAG_ID));
	if (id && aci_is_of(t->options, group) && sandbox_id_is_good(slice_str(id)) && has_name_of(group, id))
		t->each(t->arg, id);
}

bool aci_list_each(struct arm *arm, const struct aci_options *o, aci_each *each, void *arg)
{
	struct told told = {o, each, arg};
	return aci_pages(arm, ACI_TYPE, ACI_VERSION, tell_ours, &told);
}

static void print(void *arg, const char *id)
{
	(void)arg;
	puts(id);
}

int aci_list(const struct aci_options *o)
{
	static struct arm arm;
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	const bool ok = aci_list_each(&arm, o, print, NULL) && (!aci_is_split(o) || split_list(o, &arm.web)) &&
			fflush(stdout) == 0;
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
	arm.patience_ms = LIMIT_ARM_CHECK_MS;
	arm_path(&arm, ACI_TYPE, ACI_VERSION, path);
	arm_begin(&arm, &call, "GET", path, NULL, ARM_REPEATS);
	arm_await(&arm, &call);
	bool ok = arm_is_good(&call);
	if (!ok)
		say("resource group %s: %s%s%s", o->azure.group, call.code, call.code[0] ? ": " : "", call.message);
	arm_free(&arm, &call);
	ok = ok && (!o->wants_pools || standby_check(&arm, o));
	if (aci_is_split(o))
		ok = split_check(o, &arm.web) && ok;
	arm_close(&arm);
	return ok ? 0 : EXIT_FAILED;
}
