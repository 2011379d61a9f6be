/* The resource group: looked at, and made with a tag that says by whom. */
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

enum group_found group_look(struct deploy *d, json_t **out)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	enum group_found found = GROUP_UNKNOWN;
	path_group(d, "", path);
	if (session_get(d, &call, path)) {
		*out = json_incref(call.answer);
		found = GROUP_IS;
	} else if (call.status == 404) {
		found = GROUP_ABSENT;
	} else if (!d->is_stopped) {
		errors_say_call(d->options->azure.group, &call);
	}
	arm_free(&d->arm, &call);
	return found;
}

bool tag_is_ours(const json_t *what)
{
	return strcmp(json_text(json_object_get(what, "tags"), DEPLOY_TAG), DEPLOY_OWNER) == 0;
}

static int create(struct deploy *d)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	if (!d->options->location) {
		say("--location: the resource group %s is not there, and has to be made somewhere",
		    d->options->azure.group);
		return EXIT_WRONG;
	}
	path_group(d, "", path);
	json_t *body = json_pack("{s:s,s:{s:s}}", "location", d->options->location, "tags", DEPLOY_TAG, DEPLOY_OWNER);
	const bool ok = session_ask(d, &call, "PUT", path, body, ARM_REPEATS);
	if (ok)
		fprintf(d->progress.out, "resource group %s: made in %s\n", d->options->azure.group,
			d->options->location);
	else if (!d->is_stopped)
		errors_say_call("the resource group can't be made", &call);
	arm_free(&d->arm, &call);
	return ok ? 0 : EXIT_FAILED;
}

static int check(const struct deploy *d, const json_t *group)
{
	const char *location = json_text(group, "location");
	if (strcasecmp(json_text(json_object_get(group, "properties"), "provisioningState"), "Deleting") == 0) {
		say("the resource group %s is being deleted: try again when it is gone", d->options->azure.group);
		return EXIT_FAILED;
	}
	if (d->options->location && strcasecmp(location, d->options->location) != 0) {
		say("--location: the resource group %s is there already, in %s", d->options->azure.group, location);
		return EXIT_WRONG;
	}
	return 0;
}

int group_make(struct deploy *d)
{
	json_t *group = NULL;
	int code = EXIT_FAILED;
	switch (group_look(d, &group)) {
	case GROUP_IS:
		code = check(d, group);
		break;
	case GROUP_ABSENT:
		code = create(d);
		break;
	case GROUP_UNKNOWN:
		break;
	}
	json_decref(group);
	return code;
}
