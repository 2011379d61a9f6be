/* cage azure down: all that is in the group, in an order in which it goes; then a look whether it has gone. */
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/client/table.h"
#include "orchestrator/deploy/deploy.h"

/* ---- what there is ---- */

static json_t *list_resources(struct deploy *d)
{
	char path[LIMIT_ARM_URL];
	path_group(d, "/resources", path);
	return session_list(d, path);
}

static bool print_resources(const json_t *resources)
{
	static const char *const names[] = {"TYPE", "NAME", "LOCATION", NULL};
	struct table t;
	size_t i;
	const json_t *resource;
	table_begin(&t, names);
	json_array_foreach(resources, i, resource)
	{
		table_cell(&t, json_text(resource, "type"));
		table_cell(&t, json_text(resource, "name"));
		table_cell(&t, json_text(resource, "location"));
	}
	return table_end(&t);
}

static bool print_ids(const json_t *list)
{
	char safe[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *item;
	json_array_foreach(list, i, item)
	{
		printf("%s\n", shown(json_text(item, "id"), safe, sizeof(safe)));
	}
	return fflush(stdout) == 0;
}

/* ---- deployments that run would make anew what is removed ---- */

/* True: it can be looked at; ended: it has come to an end, or is not there any more. */
static bool look_at(struct deploy *d, const char *name, bool *ended)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	path_deployment(d, name, "", path);
	const bool is_there = session_get(d, &call, path), ok = is_there || call.status == 404;
	*ended = ok && (!is_there || !deployment_is_active(call.answer));
	if (!ok && !d->is_stopped)
		errors_say_call("a deployment that was canceled can't be looked at", &call);
	arm_free(&d->arm, &call);
	return ok;
}

/* False: it may still be active, which was said unless it was stopped. */
static bool wait_for_end(struct deploy *d, const char *name)
{
	const uint64_t until = clock_mono_us() + LIMIT_DEPLOY_CANCEL_MS * 1000ull;
	bool ended = false;
	do {
		if (!look_at(d, name, &ended))
			return false;
	} while (!ended && session_rest(d, LIMIT_DEPLOY_LOOK_MS) && clock_mono_us() < until);
	if (!ended && !d->is_stopped)
		say("the deployment %s was canceled and is still active: nothing was removed, since it would be made "
		    "anew",
		    name);
	return ended;
}

/* One that can't be canceled has ended by itself, or will not end soon. */
static bool cancel(struct deploy *d, const char *name)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	path_deployment(d, name, "/cancel", path);
	const bool ok = session_ask(d, &call, "POST", path, NULL, ARM_REPEATS),
		   is_refused = !ok && call.status != 409 && call.status != 404;
	if (ok)
		printf("deployment %s: canceled\n", name);
	else if (is_refused && !d->is_stopped)
		errors_say_call("a deployment that is under way can't be canceled", &call);
	arm_free(&d->arm, &call);
	return !is_refused && wait_for_end(d, name);
}

static bool cancel_all(struct deploy *d)
{
	char path[LIMIT_ARM_URL];
	size_t i;
	const json_t *deployment;
	path_deployment(d, "", "", path);
	json_t *deployments = session_list(d, path);
	bool ok = deployments != NULL;
	json_array_foreach(deployments, i, deployment)
	{
		if (ok && deployment_is_active(deployment) && id_is_within(d, json_text(deployment, "id")) &&
		    (!d->options->only_ours || tag_is_ours(deployment)))
			ok = cancel(d, json_text(deployment, "name"));
	}
	json_decref(deployments);
	return ok;
}

/* ---- all of the group ---- */

/* They use the network, and are what costs most. What is left of them is said, and goes with the group or is found in the last look. */
static void remove_sandboxes(struct deploy *d, const json_t *resources)
{
	json_t *list = json_array();
	ours_add_sandboxes(resources, true, list);
	ours_remove(d, list);
	json_decref(list);
}

static bool remove_group(struct deploy *d)
{
	static struct operation o;
	char path[LIMIT_ARM_URL];
	bool ok = false;
	path_group(d, "", path);
	for (unsigned i = 0; !ok && !d->is_stopped && i < LIMIT_DEPLOY_IDLE_ROUNDS; i++) {
		if (i > 0 && !session_rest(d, LIMIT_DEPLOY_ROUND_MS))
			break;
		progress_set(&d->progress, d->options->azure.group, i > 0 ? "Deleting again" : "Deleting");
		ok = session_operate(d, &o, "DELETE", path, NULL) || o.call.status == 404;
		progress_below(&d->progress);
		if (!ok && !d->is_stopped)
			errors_say_operation(d->options->azure.group, &o);
		operation_free(&d->arm, &o);
	}
	progress_set(&d->progress, d->options->azure.group, ok ? "Deleted" : "Failed");
	progress_end(&d->progress);
	return ok;
}

/* ---- the last look ---- */

static int say_left(const json_t *resources)
{
	say("%zu are left:", json_array_size(resources));
	print_resources(resources);
	return EXIT_FAILED;
}

static int look_again(struct deploy *d)
{
	json_t *group = NULL, *resources = NULL;
	int code = EXIT_FAILED;
	switch (group_look(d, &group)) {
	case GROUP_ABSENT:
		printf("The resource group %s is gone, and all that was in it.\n", d->options->azure.group);
		code = 0;
		break;
	case GROUP_IS:
		say("the resource group %s is still there", d->options->azure.group);
		resources = list_resources(d);
		if (json_array_size(resources) > 0)
			say_left(resources);
		break;
	case GROUP_UNKNOWN:
		break;
	}
	json_decref(group);
	json_decref(resources);
	return code;
}

/* What Azure keeps by itself. */
static void say_recoverable(const json_t *resources)
{
	char name[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *resource;
	json_array_foreach(resources, i, resource)
	{
		if (strcasecmp(json_text(resource, "type"), "Microsoft.OperationalInsights/workspaces") == 0)
			printf("workspace %s: deleted; Azure keeps it, with the log in it, for 14 days\n",
			       shown(json_text(resource, "name"), name, sizeof(name)));
	}
}

static int remove_whole(struct deploy *d, const json_t *resources)
{
	if (!cancel_all(d))
		return EXIT_FAILED;
	remove_sandboxes(d, resources);
	remove_group(d);
	if (d->is_stopped)
		return EXIT_STOPPED;
	const int left = look_again(d);
	if (left)
		return left;
	say_recoverable(resources);
	return vaults_purge(d, resources);
}

/* ---- what is ours in a group of somebody else ---- */

static int remove_listed(struct deploy *d, json_t *list)
{
	const int code = ours_remove(d, list);
	if (d->is_stopped)
		return EXIT_STOPPED;
	if (code) {
		say("%zu of ours are left:", json_array_size(list));
		print_ids(list);
		return code;
	}
	printf("Nothing of ours is left in the resource group %s.\n", d->options->azure.group);
	return 0;
}

static int remove_ours(struct deploy *d, json_t *list)
{
	if (!cancel_all(d))
		return EXIT_FAILED;
	json_t *all = json_copy(list); /* removing takes them out */
	int code = all ? remove_listed(d, list) : EXIT_FAILED;
	if (code == 0)
		code = vaults_purge(d, all);
	json_decref(all);
	return code;
}

static int down_ours(struct deploy *d, const json_t *resources)
{
	json_t *list = ours_list(d, resources);
	int code = EXIT_FAILED;
	if (list && json_array_size(list) == 0) {
		printf("Nothing in the resource group %s is ours.\n", d->options->azure.group);
		code = vaults_purge(d, NULL);
	} else if (list && print_ids(list)) {
		code = confirm(d, "remove these", "removed");
		if (code == 0)
			code = remove_ours(d, list);
	}
	json_decref(list);
	return code;
}

/* ---- which of these ---- */

static int down_whole(struct deploy *d, const json_t *resources)
{
	if (json_array_size(resources) > 0 && !print_resources(resources))
		return EXIT_FAILED;
	const int code = confirm(d, "remove it", "removed");
	return code ? code : remove_whole(d, resources);
}

static int down_group(struct deploy *d, const json_t *group)
{
	if (!tag_is_ours(group) && !d->options->only_ours) {
		say("the resource group %s was not made by cage azure up: --only-ours removes what was deployed into "
		    "it, "
		    "and nothing else",
		    d->options->azure.group);
		return EXIT_FAILED;
	}
	json_t *resources = list_resources(d);
	int code = EXIT_FAILED;
	if (resources)
		code = d->options->only_ours ? down_ours(d, resources) : down_whole(d, resources);
	json_decref(resources);
	return code;
}

int deploy_down(struct deploy *d)
{
	json_t *group = NULL;
	int code = EXIT_FAILED;
	switch (group_look(d, &group)) {
	case GROUP_IS:
		code = down_group(d, group);
		break;
	case GROUP_ABSENT:
		printf("There is no resource group %s.\n", d->options->azure.group);
		code = vaults_purge(d, NULL);
		break;
	case GROUP_UNKNOWN:
		break;
	}
	json_decref(group);
	if (!d->is_stopped)
		return code;
	return session_stopped(d, d->has_asked
					  ? "what Azure was asked for goes on; cage azure down once more does the rest"
					  : "nothing was asked of Azure, and nothing was removed");
}
