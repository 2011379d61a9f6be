/* What deployments of ours made in a resource group of somebody else: found by the tag of the deployment, removed in an order in which
 * nothing is in the way. The deployment's own record goes last: so what is cut off knows, the next time, what there was. */
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "orchestrator/aci/standby.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

static json_t *find(const json_t *list, const char *id)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		if (strcasecmp(json_text(item, "id"), id) == 0)
			return item;
	}
	return NULL;
}

/* ---- what there is ---- */

/* The version of the API that its resource was made with, as the template says that was deployed. */
static const char *version_of(const json_t *template, const char *type)
{
	const json_t *resource;
	for (size_t i = 0; (resource = template_resource(template, i)); i++)
		if (strcasecmp(json_text(resource, "type"), type) == 0)
			return json_text(resource, "apiVersion");
	return "";
}

static void add_resources(const struct deploy *d, const json_t *operations, const json_t *template, json_t *out)
{
	size_t i;
	const json_t *operation;
	json_array_foreach(operations, i, operation)
	{
		const json_t *p = json_object_get(operation, "properties"),
			     *target = json_object_get(p, "targetResource");
		const char *id = json_text(target, "id"), *what = json_text(p, "provisioningOperation");
		if (id_is_within(d, id) && (!what[0] || strcasecmp(what, "Create") == 0) && !find(out, id))
			remove_add(out, id, version_of(template, json_text(target, "resourceType")));
	}
}

static void add_needs(const json_t *deployment, const json_t *out)
{
	size_t i, j;
	const json_t *dependency, *needed;
	json_array_foreach(json_object_get(json_object_get(deployment, "properties"), "dependencies"), i, dependency)
	{
		json_t *item = find(out, json_text(dependency, "id")), *needs = json_array();
		json_array_foreach(json_object_get(dependency, "dependsOn"), j, needed)
		{
			json_array_append(needs, json_object_get(needed, "id"));
		}
		if (item)
			json_object_set(item, "needs", needs);
		json_decref(needs);
	}
}

/* One deployment: its template for the versions, its operations for the resources, itself for the order. */
static bool add_deployment(struct deploy *d, const char *name, json_t *out)
{
	static struct arm_call template, whole;
	char path[LIMIT_ARM_URL];
	path_deployment(d, name, "/operations", path);
	json_t *operations = session_list(d, path);
	path_deployment(d, name, "/exportTemplate", path);
	bool ok = operations && session_ask(d, &template, "POST", path, NULL, ARM_REPEATS);
	path_deployment(d, name, "", path);
	ok = ok && session_get(d, &whole, path);
	if (ok) {
		add_resources(d, operations, json_object_get(template.answer, "template"), out);
		add_needs(whole.answer, out);
	} else if (!d->is_stopped) {
		say("the deployment %s can't be looked at: %s%s", name, template.message, whole.message);
	}
	json_decref(operations);
	arm_free(&d->arm, &template);
	arm_free(&d->arm, &whole);
	return ok;
}

/* What cage-aci makes, with the tag that it has from there. In the order in which it is removed: a pool makes groups anew, and has a
 * profile for that. */
static const struct kind {
	const char *type, *version, *tag;
} kinds[] = {{STANDBY_TYPE, STANDBY_VERSION, ACI_TAG_STATE},
	     {ACI_TYPE, ACI_VERSION, ACI_TAG_ID},
	     {PROFILE_TYPE, ACI_VERSION, ACI_TAG_STATE}};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void add_sandbox(const json_t *resource, bool of_anybody, json_t *out)
{
	const json_t *tags = json_object_get(resource, "tags");
	for (size_t i = 0; i < N_KINDS; i++)
		if (strcasecmp(json_text(resource, "type"), kinds[i].type) == 0 &&
		    (of_anybody || json_object_get(tags, kinds[i].tag)))
			remove_add(out, json_text(resource, "id"), kinds[i].version);
}

void ours_add_sandboxes(const json_t *resources, bool of_anybody, json_t *out)
{
	size_t i;
	const json_t *resource;
	json_array_foreach(resources, i, resource)
	{
		add_sandbox(resource, of_anybody, out);
	}
}

json_t *ours_list(struct deploy *d, const json_t *resources)
{
	char path[LIMIT_ARM_URL];
	size_t i;
	const json_t *deployment;
	json_t *out = json_array();
	path_deployment(d, "", "", path);
	json_t *deployments = session_list(d, path);
	bool ok = deployments && out;
	ours_add_sandboxes(resources, false, out);
	json_array_foreach(deployments, i, deployment)
	{
		if (ok && tag_is_ours(deployment))
			ok = add_deployment(d, json_text(deployment, "name"), out);
	}
	json_array_foreach(deployments, i, deployment)
	{
		if (tag_is_ours(deployment))
			remove_add(out, json_text(deployment, "id"), DEPLOY_VERSION);
	}
	json_decref(deployments);
	if (ok)
		return out;
	json_decref(out);
	return NULL;
}

/* ---- in order ---- */

static bool is_deployment(const json_t *item)
{
	return strcasestr(json_text(item, "id"), "/providers/Microsoft.Resources/deployments/") != NULL;
}

static bool is_needed(const json_t *list, const json_t *item)
{
	size_t i, j;
	const json_t *other, *need;
	if (is_deployment(item) && !is_deployment(json_array_get(list, 0)))
		return true; /* there is something left that it tells of */
	json_array_foreach(list, i, other)
	{
		json_array_foreach(json_object_get(other, "needs"), j, need)
		{
			if (strcasecmp(json_string_value(need) ? json_string_value(need) : "", json_text(item, "id")) ==
			    0)
				return true;
		}
	}
	return false;
}

static void pick_kind(const json_t *list, const char *type, json_t *out)
{
	char part[128];
	size_t i;
	json_t *item;
	snprintf(part, sizeof(part), "/providers/%s/", type);
	json_array_foreach(list, i, item)
	{
		if (strcasestr(json_text(item, "id"), part))
			json_array_append(out, item);
	}
}

/* Those that no other one needs. Sandboxes are in nobody's list, and use a network: as long as there are any, only they, one kind after
 * the other. */
static json_t *pick(const json_t *list)
{
	size_t i;
	json_t *item, *out = json_array();
	for (i = 0; i < N_KINDS && json_array_size(out) == 0; i++)
		pick_kind(list, kinds[i].type, out);
	if (json_array_size(out) > 0)
		return out;
	json_array_foreach(list, i, item)
	{
		if (!is_needed(list, item))
			json_array_append(out, item);
	}
	return out;
}

int ours_remove(struct deploy *d, json_t *list)
{
	unsigned idle = 0;
	for (unsigned round = 0; round < LIMIT_DEPLOY_ROUNDS && json_array_size(list) > 0; round++) {
		const size_t before = json_array_size(list);
		json_t *now = pick(list);
		remove_all(d, now, idle + 1 >= LIMIT_DEPLOY_IDLE_ROUNDS);
		json_decref(now);
		remove_drop_gone(list);
		idle = json_array_size(list) < before ? 0 : idle + 1;
		if (d->is_stopped || idle >= LIMIT_DEPLOY_IDLE_ROUNDS)
			break;
		if (idle > 0)
			session_rest(d, LIMIT_DEPLOY_ROUND_MS);
	}
	return json_array_size(list) == 0 ? 0 : EXIT_FAILED;
}
