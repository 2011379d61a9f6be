/* A deployment is looked at until it has ended, with the state of each resource in it. */
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

static const char *state_of(const json_t *deployment)
{
	return json_text(json_object_get(deployment, "properties"), "provisioningState");
}

bool deployment_is_active(const json_t *deployment)
{
	static const char *const ended[] = {"Succeeded", "Failed", "Canceled", "Deleted", "NotSpecified"};
	for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++)
		if (strcasecmp(state_of(deployment), ended[i]) == 0)
			return false;
	return true;
}

/* ---- resources ---- */

static void show(struct deploy *d, const json_t *operations)
{
	char name[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *operation;
	json_array_foreach(operations, i, operation)
	{
		const json_t *p = json_object_get(operation, "properties"),
			     *target = json_object_get(p, "targetResource");
		const char *what = json_text(p, "provisioningOperation");
		if (!target || (what[0] && strcasecmp(what, "Create") != 0))
			continue;
		snprintf(name, sizeof(name), "%s/%s", json_text(target, "resourceType"),
			 json_text(target, "resourceName"));
		progress_set(&d->progress, name, json_text(p, "provisioningState"));
	}
	progress_draw(&d->progress);
}

/* ---- the deployment ---- */

/* True: it is there, and is the one that is meant; *out gets it. One that was just asked for may not be seen everywhere yet. */
static bool look(struct deploy *d, const char *attempt, unsigned *absent, json_t **out)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	path_deployment(d, d->options->name, "", path);
	bool ok = session_get(d, &call, path);
	const char *whose = json_text(json_object_get(call.answer, "tags"), DEPLOY_TAG_ATTEMPT);
	const bool is_unseen = call.status == 404 || (ok && strcmp(whose, attempt) != 0);
	if (is_unseen && ++*absent < LIMIT_ARM_ABSENT) {
		ok = true;
	} else if (is_unseen) {
		say("the deployment %s is not there any more, or was replaced by another", d->options->name);
		ok = false;
	} else if (ok) {
		json_decref(*out);
		*out = json_incref(call.answer);
	} else if (!d->is_stopped) {
		errors_say_call("the deployment can't be looked at", &call);
	}
	arm_free(&d->arm, &call);
	return ok;
}

static bool look_at_resources(struct deploy *d, json_t **operations)
{
	char path[LIMIT_ARM_URL];
	path_deployment(d, d->options->name, "/operations", path);
	json_t *list = session_list(d, path);
	if (!list)
		return false;
	json_decref(*operations);
	*operations = list;
	show(d, list);
	return true;
}

static enum follow_end end_of(const json_t *deployment)
{
	return strcasecmp(state_of(deployment), "Succeeded") == 0 ? FOLLOW_GOOD : FOLLOW_BAD;
}

enum follow_end follow(struct deploy *d, const char *attempt, json_t **deployment, json_t **operations)
{
	const uint64_t until = clock_mono_us() + LIMIT_DEPLOY_MS * 1000ull;
	unsigned absent = 0;
	enum follow_end end = FOLLOW_LOST;
	do {
		if (!look(d, attempt, &absent, deployment) || (*deployment && !look_at_resources(d, operations)))
			break;
		if (*deployment && !deployment_is_active(*deployment)) {
			end = end_of(*deployment);
			break;
		}
	} while (session_rest(d, LIMIT_DEPLOY_LOOK_MS) && clock_mono_us() < until);
	progress_end(&d->progress);
	return d->is_stopped ? FOLLOW_STOPPED : end;
}
