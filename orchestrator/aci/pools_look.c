/* What there is of standby pools, and how they are. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/aci/standby.h"

struct collected {
	const struct aci_options *options;
	struct standby_list *list;
	bool is_too_much;
};

static void collect(void *arg, const json_t *item)
{
	struct collected *c = arg;
	const char *name = json_string_value(json_object_get(item, "name"));
	if (!name || strncmp(name, "cage-", 5) != 0 || strlen(name) >= STANDBY_NAME || !aci_is_of(c->options, item))
		return;
	c->is_too_much = c->list->n == LIMIT_ACI_POOLS;
	if (!c->is_too_much)
		snprintf(c->list->names[c->list->n++], STANDBY_NAME, "%s", name);
}

bool standby_list(struct arm *arm, const struct aci_options *o, struct standby_list *out)
{
	struct collected c = {.options = o, .list = out};
	out->n = 0;
	if (!aci_pages(arm, PROFILE_TYPE, ACI_VERSION, collect, &c))
		return false;
	if (c.is_too_much)
		say("there are more than %d pools of --state %s: some have to be removed by hand", LIMIT_ACI_POOLS,
		    o->state);
	return !c.is_too_much;
}

/* ---- how one is ---- */

static long long count(const json_t *view, const char *state)
{
	size_t i, j;
	json_t *zone, *one;
	json_int_t n = 0;
	json_array_foreach(json_object_get(view, "instanceCountSummary"), i, zone)
		json_array_foreach(json_object_get(zone, "instanceCountsByState"), j, one)
	{
		const char *its = json_string_value(json_object_get(one, "state"));
		if (its && strcmp(its, state) == 0)
			n += json_integer_value(json_object_get(one, "count"));
	}
	return n;
}

/* False: it can't be seen, and the call says why. */
static bool look_at(struct arm *arm, const char *name, struct arm_call *call)
{
	char path[LIMIT_ARM_URL], resource[256];
	snprintf(resource, sizeof(resource), STANDBY_TYPE "/%s/runtimeViews/latest", name);
	arm_path(arm, resource, STANDBY_VERSION, path);
	arm_begin(arm, call, "GET", path, NULL, ARM_REPEATS);
	arm_await(arm, call);
	return arm_is_good(call);
}

static const char *health(const json_t *view, char room[100])
{
	const char *code = json_string_value(json_object_get(json_object_get(view, "status"), "code"));
	const char *slash = code ? strrchr(code, '/') : NULL;
	arm_put_text(room, 100, slash ? slash + 1 : code);
	return room[0] ? room : "unknown";
}

static bool show(struct arm *arm, const char *name)
{
	static struct arm_call call;
	char room[100];
	const bool ok = look_at(arm, name, &call);
	const json_t *view = json_object_get(call.answer, "properties");
	if (ok)
		printf("%s running=%lld creating=%lld deleting=%lld health=%s\n", name, count(view, "Running"),
		       count(view, "Creating"), count(view, "Deleting"), health(view, room));
	else
		say("%s: %s", name, call.message);
	arm_free(arm, &call);
	return ok;
}

int standby_show(const struct aci_options *o)
{
	static struct arm arm;
	static struct standby_list list;
	if (!arm_open(&arm, &o->azure))
		return EXIT_FAILED;
	bool ok = standby_list(&arm, o, &list);
	for (size_t i = 0; i < list.n; i++)
		ok = show(&arm, list.names[i]) && ok;
	arm_close(&arm);
	return ok && fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

/* ---- a trial ---- */

/* One that is not there is made when the service starts. */
static bool is_well(struct arm *arm, const char *name)
{
	static struct arm_call call;
	char room[100], why[300];
	const bool is_seen = look_at(arm, name, &call);
	const json_t *view = json_object_get(call.answer, "properties");
	const bool is_good = is_seen ? strcmp(health(view, room), "degraded") != 0 : call.status == 404;
	arm_put_text(why, sizeof(why), json_string_value(json_object_get(json_object_get(view, "status"), "message")));
	if (!is_good)
		say("pool %s: %s", name, !is_seen ? call.message : why[0] ? why : "Azure says that it is degraded");
	arm_free(arm, &call);
	return is_good;
}

static void ignore(void *arg, const json_t *item)
{
	(void)arg, (void)item;
}

bool standby_check(struct arm *arm, const struct aci_options *o)
{
	static struct standby_list list;
	const char *why = standby_why_not(o);
	if (why)
		say("%s", why);
	bool ok = !why && aci_pages(arm, STANDBY_TYPE, STANDBY_VERSION, ignore, NULL) && standby_list(arm, o, &list);
	for (size_t i = 0; i < list.n && !why; i++)
		ok = is_well(arm, list.names[i]) && ok;
	return ok;
}
