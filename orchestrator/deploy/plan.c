/* cage azure plan: what Azure would do. It needs the resource group; without one, all of the template is new. */
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

/* The changes, as what-if tells them; NULL: it was said why not. */
static const json_t *changes_of(const struct operation *o)
{
	const json_t *answer = o->call.answer, *error = json_object_get(answer, "error");
	const json_t *changes = json_object_get(json_object_get(answer, "properties"), "changes");
	if (json_is_object(error) || strcasecmp(json_text(answer, "status"), "Failed") == 0) {
		errors_say("Azure can't tell", error);
		return NULL;
	}
	if (!json_is_array(changes))
		say("Azure has not told any changes");
	return json_is_array(changes) ? changes : NULL;
}

static int ask(struct deploy *d)
{
	static struct operation o;
	char path[LIMIT_ARM_URL];
	int code = EXIT_FAILED;
	json_t *body = template_body(d);
	if (!body || json_object_set_new(json_object_get(body, "properties"), "whatIfSettings",
					 json_pack("{s:s}", "resultFormat", "FullResourcePayloads")) != 0) {
		json_decref(body);
		return EXIT_FAILED;
	}
	path_deployment(d, d->options->name, "/whatIf", path);
	if (session_operate(d, &o, "POST", path, body)) {
		const json_t *changes = changes_of(&o);
		if (changes)
			code = plan_print(d, changes);
	} else if (d->is_stopped) {
		code = session_stopped(d, "nothing was changed");
	} else {
		errors_say_operation("Azure can't tell", &o);
	}
	operation_free(&d->arm, &o);
	return code;
}

int deploy_plan(struct deploy *d)
{
	json_t *group = NULL;
	int code = template_read(d);
	if (code)
		return code;
	switch (group_look(d, &group)) {
	case GROUP_IS:
		code = ask(d);
		break;
	case GROUP_ABSENT:
		code = plan_print_template(d);
		break;
	case GROUP_UNKNOWN:
		code = d->is_stopped ? EXIT_STOPPED : EXIT_FAILED;
		break;
	}
	json_decref(group);
	return code;
}
