/* From a command to a group that comes up. A group is known by its name: before it is asked for, and whenever an answer was lost, it is
 * looked for, so that there is never a second one. A PUT would restart one that runs; so after a lost answer it is sent again only if
 * LIMIT_ARM_ABSENT looks in a row have found nothing, as one that was just made may not be seen everywhere yet. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/aci/standby.h"

static const char *region_of(const struct aci *a)
{
	return a->options->regions.list[a->region];
}

/* ---- looking ---- */

void create_begin(struct aci *a)
{
	aci_enter(a, ACI_LOOKS);
	arm_begin(&a->arm, &a->call, "GET", a->path, NULL, ARM_REPEATS);
}

static void look_later(struct aci *a)
{
	arm_free(&a->arm, &a->call);
	a->look_us = clock_mono_us() + LIMIT_ARM_POLL_MS * 1000ull;
}

/* After look_later(). */
static void look_again(struct aci *a)
{
	if (a->state == ACI_LOOKS && a->call.state == ARM_NONE && clock_mono_us() >= a->look_us)
		arm_begin(&a->arm, &a->call, "GET", a->path, NULL, ARM_REPEATS);
}

static bool is_ours(const struct aci *a)
{
	const json_t *tags = json_object_get(a->call.answer, "tags");
	const char *id = json_string_value(json_object_get(tags, ACI_TAG_ID));
	return id && strcmp(id, a->options->run.sandbox) == 0 && aci_is_of(a->options, a->call.answer);
}

static void ask_for_quota(struct aci *a)
{
	char path[LIMIT_ARM_URL];
	snprintf(path, sizeof(path),
		 "/subscriptions/%s/providers/Microsoft.ContainerInstance/locations/%s/usages?api-version=" ACI_VERSION,
		 a->options->azure.subscription, region_of(a));
	arm_free(&a->arm, &a->call);
	aci_enter(a, ACI_QUOTA);
	arm_begin(&a->arm, &a->call, "GET", path, NULL, ARM_REPEATS);
}

/* A group that has failed may go on running. */
static void clear(struct aci *a)
{
	a->doubts = 0;
	aci_enter(a, ACI_CLEARS);
	operation_begin(&a->arm, &a->operation, "DELETE", a->path, NULL, ARM_REPEATS);
}

/* One that stands in a pool is asked for without a look at quotas, of which it is a part already. Where the pool has none ready, Azure
 * makes one of the same profile. False: it is made in the ordinary way. */
static bool ask_for_standing(struct aci *a)
{
	char name[STANDBY_NAME];
	json_t *group = a->pool != POOL_PASSED && a->options->standby.n > 0 ? group_body(a, region_of(a)) : NULL;
	json_t *body = group ? standby_take(a, group, name) : NULL;
	if (body)
		meter_asked(a, group);
	json_decref(group);
	if (!body) {
		a->pool = POOL_PASSED;
		return false;
	}
	a->pool = POOL_ASKED;
	arm_free(&a->arm, &a->call);
	aci_enter(a, ACI_CREATES);
	operation_begin(&a->arm, &a->operation, "PUT", a->path, body, ARM_ONCE);
	return true;
}

static void take_look(struct aci *a)
{
	if (a->call.status == 404 && a->doubts > 1) {
		a->doubts--;
		look_later(a);
	} else if (a->call.status == 404) {
		if (!ask_for_standing(a))
			ask_for_quota(a);
	} else if (!arm_is_good(&a->call)) {
		aci_fail(a, "whether there is a group cage-%s can't be found out: %s", a->options->run.sandbox,
			 a->call.message);
	} else if (!is_ours(a)) {
		aci_leave(a); /* it is not ours to delete */
		say("there is a group cage-%s already, and it is somebody else's", a->options->run.sandbox);
	} else {
		const bool is_bad = aci_group_has_failed(a->call.answer);
		arm_free(&a->arm, &a->call);
		if (is_bad)
			clear(a);
		else
			watch_begin(a);
	}
}

/* ---- the region ---- */

static void next_region(struct aci *a)
{
	if (++a->region < a->options->regions.n)
		create_begin(a);
	else
		aci_fail(a, "no region is left to be tried");
}

static double requested_cpu(const json_t *body)
{
	double all = 0;
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json_object_get(body, "properties"), "containers"), i, one)
	{
		const json_t *properties = json_object_get(one, "properties");
		all += json_number_value(
			json_object_get(json_object_get(json_object_get(properties, "resources"), "requests"), "cpu"));
	}
	return all;
}

/* What is used up of the region, as far as it concerns us: groups, and processors of the kind that all have. */
static bool has_room(const struct aci *a, double cpu)
{
	size_t i;
	json_t *usage;
	json_array_foreach(json_object_get(a->call.answer, "value"), i, usage)
	{
		const char *name = json_string_value(json_object_get(json_object_get(usage, "name"), "value"));
		const json_int_t used = json_integer_value(json_object_get(usage, "currentValue"));
		const json_int_t most = json_integer_value(json_object_get(usage, "limit"));
		const double wanted = name && strcmp(name, "ContainerGroups") == 0 ? 1
				      : name && strcmp(name, "StandardCores") == 0 ? cpu
										   : 0;
		if (wanted > 0 && (double)used + wanted > (double)most) {
			say("%s: quota %s: %lld of %lld are used, and %.2f more are wanted", region_of(a), name,
			    (long long)used, (long long)most, wanted);
			return false;
		}
	}
	return true;
}

/* A region that does not say what it has left is tried all the same. */
static void take_quota(struct aci *a)
{
	json_t *body = group_body(a, region_of(a));
	if (!body) {
		aci_fail(a, "the group can't be described");
	} else if (arm_is_good(&a->call) && !has_room(a, requested_cpu(body))) {
		arm_free(&a->arm, &a->call);
		next_region(a);
	} else {
		arm_free(&a->arm, &a->call);
		aci_enter(a, ACI_CREATES);
		meter_asked(a, body);
		operation_begin(&a->arm, &a->operation, "PUT", a->path, json_incref(body), ARM_ONCE);
	}
	json_decref(body);
}

/* ---- the group ---- */

static void take_clearance(struct aci *a)
{
	const bool is_gone = a->operation.end == OPERATION_GOOD, was_of_pool = a->pool == POOL_ASKED;
	operation_free(&a->arm, &a->operation);
	a->pool = POOL_PASSED;
	if (is_gone && was_of_pool)
		create_begin(a); /* the same region, without the pool */
	else if (is_gone)
		next_region(a);
	else
		aci_fail(a, "a group that has failed can't be removed");
}

static void take_creation(struct aci *a)
{
	char code[100], message[400];
	const enum operation_end end = a->operation.end;
	memcpy(code, a->operation.code, sizeof(code));
	memcpy(message, a->operation.message, sizeof(message));
	operation_free(&a->arm, &a->operation);
	switch (end) {
	case OPERATION_GOOD:
		watch_begin(a);
		return;
	case OPERATION_UNKNOWN:
		a->doubts = LIMIT_ARM_ABSENT;
		if (++a->looks > LIMIT_ACI_LOOKS)
			aci_fail(a, "the group could not be made: %s", message);
		else
			create_begin(a);
		return;
	case OPERATION_BAD:
		say("%s: the group could not be %s: %s%s%s", region_of(a),
		    a->pool == POOL_ASKED ? "taken from its pool, and is made anew" : "made", code, code[0] ? ": " : "",
		    message);
		meter_forget(a);
		clear(a);
		return;
	}
}

void create_look(struct aci *a)
{
	if (a->state == ACI_CREATES || a->state == ACI_CLEARS) {
		operation_look(&a->arm, &a->operation);
		if (a->operation.state != OPERATION_DONE)
			return;
		if (a->state == ACI_CREATES)
			take_creation(a);
		else
			take_clearance(a);
		return;
	}
	look_again(a);
	arm_look(&a->arm, &a->call);
	if (a->call.state != ARM_DONE)
		return;
	if (a->state == ACI_LOOKS)
		take_look(a);
	else
		take_quota(a);
}
