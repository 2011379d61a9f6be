/* The shape of a workflow, key by key, and its graph. */
#include "orchestrator/service/workflow_check.h"

#include <stdio.h>
#include <string.h>

#include "orchestrator/service/backends.h"
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/create_one.h"
#include "orchestrator/service/creation.h"
#include "orchestrator/service/workflow_graph.h"

#define MARKS "expected a relative path without \"..\", up to 1000 bytes"

/* ---- shapes ---- */

static void check_needs(const struct place *p, const json_t *value)
{
	if (check_list(p, value, 0, LIMIT_WORKFLOW_NEEDS, check_name))
		check_unique(p, value);
}

/* One that the shell, the log and a URL can all have, and that leads nowhere else. */
static void check_path(const struct place *p, const json_t *value)
{
	const struct slice path = slice_of(json_string_value(value), json_string_length(value));
	if (!json_is_string(value) || path.len > LIMIT_WORKFLOW_PATH || !file_path_is_good(path))
		place_error(p, MARKS);
}

static void check_bytes(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, LIMIT_WORKFLOW_BYTES);
}

static void check_artifact(const struct place *p, const json_t *value)
{
	static const struct member members[] = {{"path", check_path, true}, {"max_bytes", check_bytes, false}};
	check_object(p, value, members, 2);
}

static void check_artifacts(const struct place *p, const json_t *value)
{
	check_list(p, value, 0, LIMIT_WORKFLOW_ARTIFACTS, check_artifact);
}

static void check_input(const struct place *p, const json_t *value)
{
	static const struct member members[] = {
		{"step", check_name, true}, {"path", check_path, true}, {"to", check_path, false}};
	check_object(p, value, members, 3);
}

static void check_inputs(const struct place *p, const json_t *value)
{
	check_list(p, value, 0, LIMIT_WORKFLOW_INPUTS, check_input);
}

static void check_sandbox(const struct place *p, const json_t *value)
{
	if (!json_is_object(value))
		place_error(p, "expected an object");
}

static void check_step(const struct place *p, const json_t *value)
{
	static const struct member members[] = {{"id", check_name, true},
						{"needs", check_needs, false},
						{"sandbox", check_sandbox, true},
						{"artifacts", check_artifacts, false},
						{"inputs", check_inputs, false}};
	check_object(p, value, members, sizeof(members) / sizeof(members[0]));
}

static void check_steps(const struct place *p, const json_t *value)
{
	check_list(p, value, 1, LIMIT_WORKFLOW_STEPS, check_step);
}

static void check_title(const struct place *p, const json_t *value)
{
	check_text(p, value, 0, LIMIT_WORKFLOW_NAME);
}

static const struct member workflow_members[] = {
	{"name", check_title, false}, {"labels", create_check_labels, false}, {"steps", check_steps, true}};

/* ---- finding ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

size_t workflow_find_step(const json_t *steps, const char *id)
{
	size_t i;
	json_t *step;
	json_array_foreach(steps, i, step)
	{
		if (strcmp(text_of(step, "id"), id) == 0)
			return i;
	}
	return json_array_size(steps);
}

size_t artifact_find(const json_t *step, const char *path)
{
	size_t i;
	json_t *artifact;
	json_array_foreach(json_object_get(step, "artifacts"), i, artifact)
	{
		if (strcmp(text_of(artifact, "path"), path) == 0)
			return i;
	}
	return json_array_size(json_object_get(step, "artifacts"));
}

json_int_t artifact_most(const json_t *artifact)
{
	const json_t *most = json_object_get(artifact, "max_bytes");
	return most ? json_integer_value(most) : (json_int_t)LIMIT_WORKFLOW_BYTES_DEFAULT;
}

/* ---- how they hang together ---- */

struct judge {
	const json_t *steps;
	struct graph graph;
	struct place list;
	json_int_t bytes; /* of all artifacts */
};

static void judge_needs(struct judge *j, const struct place *at, size_t i, const json_t *step)
{
	const struct place needs = {at->errors, at, "needs", 0};
	size_t k;
	json_t *id;
	json_array_foreach(json_object_get(step, "needs"), k, id)
	{
		const struct place one = {at->errors, &needs, NULL, k};
		size_t needed = workflow_find_step(j->steps, json_string_value(id));
		if (needed == json_array_size(j->steps))
			place_error(&one, "there is no step of that id");
		else
			graph_need(&j->graph, i, needed);
	}
}

static void judge_artifacts(struct judge *j, const struct place *at, const json_t *step)
{
	const struct place artifacts = {at->errors, at, "artifacts", 0};
	size_t k;
	json_t *artifact;
	json_array_foreach(json_object_get(step, "artifacts"), k, artifact)
	{
		const struct place one = {at->errors, &artifacts, NULL, k};
		if (artifact_find(step, text_of(artifact, "path")) < k)
			place_error(&one, "is there twice");
		j->bytes += artifact_most(artifact);
	}
}

static const char *where_to(const json_t *input)
{
	const char *to = text_of(input, "to");
	return to[0] ? to : text_of(input, "path");
}

static bool is_taken(const json_t *step, size_t before, const char *to)
{
	const json_t *inputs = json_object_get(step, "inputs");
	for (size_t i = 0; i < before; i++)
		if (strcmp(where_to(json_array_get(inputs, i)), to) == 0)
			return true;
	return json_object_get(json_object_get(json_object_get(step, "sandbox"), "files"), to);
}

/* From a step that has ended by then, whatever the order, and of what that hands on. */
static void judge_inputs(const struct judge *j, const struct place *at, size_t i, const json_t *step)
{
	const struct place inputs = {at->errors, at, "inputs", 0};
	size_t k;
	json_t *input;
	json_array_foreach(json_object_get(step, "inputs"), k, input)
	{
		const struct place one = {at->errors, &inputs, NULL, k};
		size_t from = workflow_find_step(j->steps, text_of(input, "step"));
		const json_t *giver = json_array_get(j->steps, from);
		if (!giver || !graph_reaches(&j->graph, i, from))
			place_error(&one, "\"%s\" is no step that this one needs", text_of(input, "step"));
		else if (artifact_find(giver, text_of(input, "path")) ==
			 json_array_size(json_object_get(giver, "artifacts")))
			place_error(&one, "step \"%s\" has no such artifact", text_of(input, "step"));
		if (is_taken(step, k, where_to(input)))
			place_error(&one, "there is another file of that path");
	}
}

static void judge(const json_t *body, json_t *errors)
{
	const struct place root = {errors, NULL, NULL, 0};
	struct judge j = {.steps = json_object_get(body, "steps"), .list = {errors, &root, "steps", 0}};
	size_t i;
	json_t *step;
	j.graph.n = json_array_size(j.steps);
	json_array_foreach(j.steps, i, step)
	{
		const struct place at = {errors, &j.list, NULL, i}, id = {errors, &at, "id", 0};
		if (workflow_find_step(j.steps, text_of(step, "id")) < i)
			place_error(&id, "is there twice");
		judge_needs(&j, &at, i, step);
		judge_artifacts(&j, &at, step);
	}
	graph_close(&j.graph);
	json_array_foreach(j.steps, i, step)
	{
		const struct place at = {errors, &j.list, NULL, i}, needs = {errors, &at, "needs", 0};
		if (graph_is_circular(&j.graph, i))
			place_error(&needs, "leads back to the step itself");
		judge_inputs(&j, &at, i, step);
	}
	if (j.bytes > (json_int_t)LIMIT_WORKFLOW_BYTES_ALL)
		place_error(&j.list, "artifacts of all steps may have %lld bytes at most, and these %lld",
			    (long long)LIMIT_WORKFLOW_BYTES_ALL, (long long)j.bytes);
}

void workflow_check(const json_t *body, json_t *errors)
{
	const struct place root = {errors, NULL, NULL, 0};
	check_object(&root, body, workflow_members, sizeof(workflow_members) / sizeof(workflow_members[0]));
	if (json_array_size(errors) == 0)
		judge(body, errors);
}

/* ---- sandboxes ---- */

static void add_prefixed(json_t *errors, size_t step, const json_t *error)
{
	char pointer[LIMIT_SERVE_POINTER + 64];
	snprintf(pointer, sizeof(pointer), "/steps/%zu/sandbox%s", step, text_of(error, "pointer"));
	errors_add(errors, pointer, text_of(error, "detail"));
}

static void check_body(const struct config *config, const json_t *step, json_t *errors)
{
	json_t *full, *spec = creation_spec(config, json_object_get(step, "sandbox"), &full, errors);
	if (spec)
		create_check_one_step(backend_of(spec), step, errors);
	if (spec && !json_object_get(spec, "command"))
		errors_add(errors, "", "\"command\" is missing: a step ends with it");
	json_decref(full);
	json_decref(spec);
}

void workflow_check_sandboxes(const struct config *config, const json_t *body, json_t *errors)
{
	const json_t *steps = json_object_get(body, "steps");
	size_t i, k;
	json_t *step, *error;
	if (json_array_size(steps) > LIMIT_WORKFLOW_STEPS)
		return;
	json_array_foreach(steps, i, step)
	{
		if (!json_is_object(json_object_get(step, "sandbox")))
			continue;
		json_t *own = json_array();
		check_body(config, step, own);
		json_array_foreach(own, k, error) add_prefixed(errors, i, error);
		json_decref(own);
	}
}
