/* Makes the standby pools of a service what they are wanted to be. Once more comes to the same: what is there is left as it is. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/aci/standby.h"

/* One that is wanted. */
struct wish {
	char name[STANDBY_NAME];
	json_t *profile;
	uint64_t groups;
};

struct plan {
	struct wish wishes[LIMIT_ACI_POOLS];
	size_t n;
};

/* ---- what is wanted ---- */

/* A group of nobody's run, with those limits. */
static json_t *blank_group(const struct aci_options *o, const char *limits)
{
	static struct aci a;
	struct aci_options own = *o;
	own.run.sandbox = "-";
	a = (struct aci){.options = &own};
	return room_limits_parse(&a.limits, limits) == 0 ? group_body(&a, o->regions.list[0]) : NULL;
}

static struct wish *find(struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->wishes[i].name, name) == 0)
			return &p->wishes[i];
	return NULL;
}

/* Several may come to the same pool. */
static void add(struct plan *p, const char *name, json_t *profile, uint64_t groups)
{
	struct wish *same = find(p, name);
	if (same) {
		same->groups += groups;
		json_decref(profile);
		return;
	}
	struct wish *w = &p->wishes[p->n++];
	*w = (struct wish){.profile = profile, .groups = groups};
	snprintf(w->name, sizeof(w->name), "%s", name);
}

static bool read_wish(const struct aci_options *o, const char *text, struct plan *p)
{
	char name[STANDBY_NAME];
	uint64_t groups;
	const char *colon = strchr(text, ':');
	if (!colon || !slice_to_u64(slice_of(text, (size_t)(colon - text)), LIMIT_ACI_POOL, &groups) ||
	    p->n == LIMIT_ACI_POOLS) {
		say("%s: expected N:LIMITS, N at most %d, and at most %d of them", text, LIMIT_ACI_POOL,
		    LIMIT_ACI_POOLS);
		return false;
	}
	json_t *group = blank_group(o, colon + 1);
	json_t *profile = group ? standby_profile(o, group, name) : NULL;
	json_decref(group);
	if (profile)
		add(p, name, profile, groups);
	return profile;
}

static bool read_plan(const struct aci_options *o, char **wanted, struct plan *p)
{
	const char *why = *wanted ? standby_why_not(o) : NULL;
	if (why)
		say("%s", why);
	bool ok = !why;
	for (; ok && *wanted; wanted++)
		ok = read_wish(o, *wanted, p);
	return ok;
}

static void free_plan(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		json_decref(p->wishes[i].profile);
	p->n = 0;
}

/* ---- making ---- */

static void resource_path(const struct arm *arm, const char *type, const char *name, char out[LIMIT_ARM_URL])
{
	char resource[256];
	snprintf(resource, sizeof(resource), "%s/%s", type, name);
	arm_path(arm, resource, strcmp(type, STANDBY_TYPE) == 0 ? STANDBY_VERSION : ACI_VERSION, out);
}

/* False after it was said why. */
static bool put(struct arm *arm, const char *type, const char *name, json_t *body, enum arm_repeat repeat)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	resource_path(arm, type, name, path);
	arm_begin(arm, &call, "PUT", path, body, repeat);
	arm_await(arm, &call);
	const bool ok = arm_is_good(&call);
	if (!ok)
		say("%s/%s can't be made: %s%s%s", type, name, call.code, call.code[0] ? ": " : "", call.message);
	arm_free(arm, &call);
	return ok;
}

/* Is it there, and as it should be? */
static bool has_pool(struct arm *arm, const struct wish *w)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	resource_path(arm, STANDBY_TYPE, w->name, path);
	arm_begin(arm, &call, "GET", path, NULL, ARM_REPEATS);
	arm_await(arm, &call);
	const json_t *elasticity = json_object_get(json_object_get(call.answer, "properties"), "elasticityProfile");
	const json_int_t groups = json_integer_value(json_object_get(elasticity, "maxReadyCapacity"));
	const bool ok = arm_is_good(&call) && groups == (json_int_t)w->groups && !aci_group_has_failed(call.answer);
	arm_free(arm, &call);
	return ok;
}

static json_t *pool_body(const struct aci_options *o, const struct wish *w)
{
	char profile[LIMIT_ARM_URL];
	standby_id(o, PROFILE_TYPE, w->name, profile);
	json_t *groups =
		json_pack("{s:{s:s, s:i}}", "containerGroupProfile", "id", profile, "revision", STANDBY_REVISION);
	if (o->subnet)
		json_object_set_new(groups, "subnetIds", json_pack("[{s:s}]", "id", o->subnet));
	return json_pack("{s:s, s:{s:s}, s:{s:{s:I, s:s}, s:o}}", "location", o->regions.list[0], "tags", ACI_TAG_STATE,
			 o->state, "properties", "elasticityProfile", "maxReadyCapacity", (json_int_t)w->groups,
			 "refillPolicy", "always", "containerGroupProperties", groups);
}

/* A profile is sent once: each time that it is, its number may be another. */
static bool make(struct arm *arm, const struct aci_options *o, const struct wish *w, bool has_profile)
{
	if (!has_profile && !put(arm, PROFILE_TYPE, w->name, json_incref(w->profile), ARM_ONCE))
		return false;
	if (!has_pool(arm, w) && !put(arm, STANDBY_TYPE, w->name, pool_body(o, w), ARM_REPEATS))
		return false;
	return puts(w->name) >= 0 && fflush(stdout) == 0; /* at once: whoever reads it may not wait for all */
}

/* ---- removing ---- */

static bool remove_resource(struct arm *arm, const char *type, const char *name)
{
	static struct operation op;
	char path[LIMIT_ARM_URL];
	resource_path(arm, type, name, path);
	operation_begin(arm, &op, "DELETE", path, NULL, ARM_REPEATS);
	operation_await(arm, &op);
	const bool ok = op.end == OPERATION_GOOD;
	if (!ok)
		say("%s/%s can't be removed: %s", type, name, op.message);
	operation_free(arm, &op);
	return ok;
}

/* ---- all of it ---- */

static bool has_name(const struct standby_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->names[i], name) == 0)
			return true;
	return false;
}

static bool settle(struct arm *arm, const struct aci_options *o, struct plan *p)
{
	static struct standby_list there;
	bool ok = standby_list(arm, o, &there);
	if (!ok)
		return false;
	for (size_t i = 0; i < p->n; i++)
		ok = make(arm, o, &p->wishes[i], has_name(&there, p->wishes[i].name)) && ok;
	for (size_t i = 0; i < there.n; i++)
		if (!find(p, there.names[i]))
			ok = remove_resource(arm, STANDBY_TYPE, there.names[i]) &&
			     remove_resource(arm, PROFILE_TYPE, there.names[i]) && ok;
	return ok;
}

int standby_make(const struct aci_options *o, char **wanted)
{
	static struct arm arm;
	static struct plan plan;
	int code = EXIT_WRONG;
	if (read_plan(o, wanted, &plan))
		code = arm_open(&arm, &o->azure) ? 0 : EXIT_FAILED;
	if (code == 0) {
		code = settle(&arm, o, &plan) && fflush(stdout) == 0 ? 0 : EXIT_FAILED;
		arm_close(&arm);
	}
	free_plan(&plan);
	return code;
}
