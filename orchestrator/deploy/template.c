/* The template and its parameters: where they are, and the body that they make. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/wipe.h"
#include "orchestrator/client/file_text.h"
#include "orchestrator/deploy/deploy.h"
#include "orchestrator/deploy/parameters.h"
#include "orchestrator/launch.h"
#include "orchestrator/secret_variable.h"

#define PATH_ROOM 4096

/* The first of the places where it is. */
static bool find_template(const struct deploy_options *o, char path[PATH_ROOM])
{
	const char *given = getenv("CAGE_INFRA");
	if (o->template)
		return snprintf(path, PATH_ROOM, "%s", o->template) < PATH_ROOM;
	if (given && given[0])
		return snprintf(path, PATH_ROOM, "%s/azure/main.json", given) < PATH_ROOM;
	if (launch_path("../share/cage/infra/azure/main.json", path, PATH_ROOM) && access(path, R_OK) == 0)
		return true;
	return snprintf(path, PATH_ROOM, "%s/azure/main.json", CAGE_SOURCE_INFRA) < PATH_ROOM &&
	       access(path, R_OK) == 0;
}

/* NULL with a message. */
static json_t *read_json(const char *option, const char *path)
{
	json_error_t error;
	size_t len = 0;
	char *text = file_text(option, path, &len);
	if (!text)
		return NULL;
	json_t *document = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	wipe_free(text);
	if (!document)
		say("%s %s:%d:%d: no JSON that can be read", option, path, error.line, error.column);
	return document;
}

static bool is_template(const json_t *t)
{
	const char *schema = json_string_value(json_object_get(t, "$schema"));
	const json_t *resources = json_object_get(t, "resources");
	return schema && strstr(schema, "deploymentTemplate.json") &&
	       (json_is_array(resources) || json_is_object(resources));
}

/* Children get the environment, and /proc shows it. */
static void empty_variables(const struct words *given)
{
	for (size_t i = 0; i < given->n; i++) {
		const char *name = strchr(given->list[i], '=');
		if (name)
			secret_variable_wipe(name + 1);
	}
}

static void set_all(struct parameters *p, enum parameter_from from, const struct words *given)
{
	for (size_t i = 0; i < given->n; i++)
		parameters_set(p, from, given->list[i]);
}

/* What the files and the command line say. False: a file is none, so that nobody knows what is missing. */
static bool collect(struct parameters *p, const struct deploy_options *o)
{
	json_t *file = o->parameters ? read_json("--parameters", o->parameters) : NULL;
	set_all(p, FROM_WORD, &o->set);
	set_all(p, FROM_FILE, &o->set_file);
	set_all(p, FROM_VARIABLE, &o->set_env);
	const bool ok = !o->parameters || (file && parameters_take(p, o->parameters, file));
	json_decref(file);
	empty_variables(&o->set_env);
	return ok;
}

static bool read_parameters(struct deploy *d)
{
	struct parameters p = {.declared = json_object_get(d->template, "parameters"),
			       .values = d->values,
			       .secure = &d->secure,
			       .wrong = json_object()};
	const bool ok = p.wrong && collect(&p, d->options);
	if (ok) {
		parameters_check(&p);
		parameters_need(&p, d->template);
		gateway_judge(d, &p);
	}
	json_decref(p.wrong);
	d->has_secure = p.has_secure;
	return ok && p.faults == 0;
}

int template_read(struct deploy *d)
{
	char path[PATH_ROOM];
	if (!find_template(d->options, path)) {
		say("the template can't be found: set CAGE_INFRA, or give --template");
		return EXIT_WRONG;
	}
	d->template = read_json("--template", path);
	d->values = json_object();
	if (!d->template || !d->values)
		return EXIT_WRONG;
	if (!is_template(d->template)) {
		say("--template %s: it is no template of a deployment", path);
		return EXIT_WRONG;
	}
	if (read_parameters(d))
		return 0;
	return d->is_stopped ? EXIT_STOPPED : EXIT_WRONG;
}

json_t *template_resource(const json_t *template, size_t i)
{
	json_t *resources = json_object_get(template, "resources");
	void *at = json_object_iter(resources);
	if (json_is_array(resources))
		return json_array_get(resources, i);
	for (; at && i > 0; i--)
		at = json_object_iter_next(resources, at);
	return json_object_iter_value(at);
}

json_t *template_body(struct deploy *d)
{
	json_t *body = json_pack("{s:{s:s,s:O,s:O}}", "properties", "mode", "Incremental", "template", d->template,
				 "parameters", d->values);
	if (body && json_dumpb(body, NULL, 0, JSON_COMPACT) <= LIMIT_DEPLOY_BODY)
		return body;
	say("%s", body ? "template and parameters have more than the 4 MiB that Azure takes" : "no memory");
	json_decref(body);
	return NULL;
}
