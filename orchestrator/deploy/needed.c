/* Parameters of resources that are made only if another one says so, as deployGateway does. They have an empty default for the time
 * before, with which Azure takes the deployment, and fails it minutes later. */
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "orchestrator/deploy/deploy.h"
#include "orchestrator/deploy/parameters.h"

/* Text for which the template has nothing either. */
static bool is_empty(const struct parameters *p, const char *name)
{
	const json_t *value = parameters_value(p, name);
	return json_is_string(value) && json_string_length(value) == 0;
}

/* Is there "parameters('NAME')" in one of its texts? Where it is asked whether it is empty, that is no mistake. */
static bool mentions(const json_t *in, const char *use, const char *question)
{
	const char *key, *text = json_string_value(in);
	json_t *part;
	size_t i;
	if (text)
		return strstr(text, use) && !strstr(text, question);
	json_array_foreach(in, i, part)
	{
		if (mentions(part, use, question))
			return true;
	}
	json_object_foreach((json_t *)in, key, part)
	{
		if (mentions(part, use, question))
			return true;
	}
	return false;
}

/* The parameter that alone decides about it, and is true; false: there is none. */
static bool is_wanted(const struct parameters *p, const json_t *resource, char by[LIMIT_DEPLOY_NAME])
{
	const char *condition = json_string_value(json_object_get(resource, "condition")), *name;
	char text[LIMIT_DEPLOY_NAME + 16];
	json_t *declaration;
	json_object_foreach((json_t *)p->declared, name, declaration)
	{
		snprintf(text, sizeof(text), "[parameters('%s')]", name);
		if (condition && strcmp(condition, text) == 0 && json_is_true(parameters_value(p, name)))
			return snprintf(by, LIMIT_DEPLOY_NAME, "%s", name) < LIMIT_DEPLOY_NAME;
	}
	return false;
}

static void look_for(struct parameters *p, const json_t *template, const char *name)
{
	char use[LIMIT_DEPLOY_NAME + 16], question[LIMIT_DEPLOY_NAME + 24], by[LIMIT_DEPLOY_NAME];
	const json_t *resource;
	snprintf(use, sizeof(use), "parameters('%s')", name);
	snprintf(question, sizeof(question), "empty(%s)", use);
	for (size_t i = 0; (resource = template_resource(template, i)); i++)
		if (is_wanted(p, resource, by) && mentions(resource, use, question)) {
			char why[LIMIT_DEPLOY_NAME + 64];
			snprintf(why, sizeof(why), "it is needed with %s=true, and was not given", by);
			parameters_fault(p, name, why, "");
			return;
		}
}

void parameters_need(struct parameters *p, const json_t *template)
{
	const char *name;
	json_t *declaration;
	json_object_foreach((json_t *)p->declared, name, declaration)
	{
		if (is_empty(p, name) && !json_object_get(p->wrong, name))
			look_for(p, template, name);
	}
}
