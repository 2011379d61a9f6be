/* What came of a deployment, for people and for programs. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/table.h"
#include "orchestrator/deploy/deploy.h"

/* ---- outputs ---- */

static void add_row(struct table *t, const char *name, const json_t *output)
{
	const json_t *value = json_object_get(output, "value");
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	table_cell(t, name);
	table_cell(t, !value ? SECURE_SHOWN : json_is_string(value) ? json_string_value(value) : text);
	free(text);
}

static bool print_table(const json_t *outputs)
{
	static const char *const names[] = {"OUTPUT", "VALUE", NULL};
	struct table t;
	const char *name;
	json_t *output;
	if (json_object_size(outputs) == 0)
		return true;
	table_begin(&t, names);
	json_object_foreach((json_t *)outputs, name, output)
	{
		add_row(&t, name, output);
	}
	return table_end(&t);
}

static bool print_json(const struct deploy *d, const json_t *deployment, const json_t *outputs)
{
	const char *name, *state = json_text(json_object_get(deployment, "properties"), "provisioningState");
	json_t *output, *values = json_object();
	json_object_foreach((json_t *)outputs, name, output)
	{
		json_object_set(values, name, json_object_get(output, "value"));
	}
	json_t *all = json_pack("{s:s,s:s,s:s,s:o}", "group", d->options->azure.group, "deployment", d->options->name,
				"state", state, "outputs", values);
	const bool ok = all && json_print(all);
	json_decref(all);
	return ok;
}

bool outputs_print(const struct deploy *d, const json_t *deployment)
{
	const json_t *outputs = json_object_get(json_object_get(deployment, "properties"), "outputs");
	return d->options->json ? print_json(d, deployment, outputs) : print_table(outputs);
}

/* ---- failures ---- */

/* {"error": {...}} or {"status", "error"}; now and then text. */
static void say_failure(const json_t *p)
{
	char name[LIMIT_CLIENT_CELL];
	const json_t *target = json_object_get(p, "targetResource"), *message = json_object_get(p, "statusMessage");
	snprintf(name, sizeof(name), "%s/%s", json_text(target, "resourceType"), json_text(target, "resourceName"));
	json_t *made = json_is_object(message) ? NULL
					       : json_pack("{s:s,s:s}", "code", json_text(p, "statusCode"), "message",
							   json_is_string(message) ? json_string_value(message) : "");
	errors_say(name, made ? made : message);
	json_decref(made);
}

void failures_say(const struct deploy *d, const json_t *deployment, const json_t *operations)
{
	size_t i, n = 0;
	const json_t *operation, *properties = json_object_get(deployment, "properties");
	json_array_foreach(operations, i, operation)
	{
		const json_t *p = json_object_get(operation, "properties");
		if (strcasecmp(json_text(p, "provisioningState"), "Failed") != 0 ||
		    !json_object_get(p, "targetResource"))
			continue;
		say_failure(p);
		n++;
	}
	say("the deployment %s: %s", d->options->name, json_text(properties, "provisioningState"));
	if (n == 0 && json_object_get(properties, "error"))
		errors_say(d->options->name, json_object_get(properties, "error"));
}
