/* Changes, as people read them: a line for each resource, below it what changes in it, and how many of each kind. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/deploy/deploy.h"

static const struct kind {
	const char *name, *told;
	char sign;
} kinds[] = {{"Create", "to create", '+'},
	     {"Modify", "to modify", '~'},
	     {"Delete", "to delete", '-'},
	     {"Deploy", "to deploy, with changes that are not known", '!'},
	     {"NoChange", "without a change", '='},
	     {"Ignore", "left alone", '*'},
	     {"Unsupported", "of which Azure can't tell", '?'}};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static size_t kind_of(const char *name)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (strcasecmp(name, kinds[i].name) == 0)
			return i;
	return N_KINDS - 1;
}

/* ---- properties ---- */

static void put_value(const json_t *value)
{
	char safe[LIMIT_CLIENT_CELL];
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	fputs(text ? shown(text, safe, sizeof(safe)) : "-", stdout);
	free(text);
}

static void print_property(const json_t *change, unsigned depth)
{
	static const char *const names[] = {"Create", "Delete", "Modify", "Array", "NoEffect"};
	char path[LIMIT_CLIENT_CELL], sign = '?';
	size_t i;
	const json_t *child, *children = json_object_get(change, "children");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(json_text(change, "propertyChangeType"), names[i]) == 0)
			sign = "+-~~="[i];
	printf("%*s%c %s", (int)(6 + 2 * depth), "", sign, shown(json_text(change, "path"), path, sizeof(path)));
	if (json_array_size(children) == 0) {
		fputs(": ", stdout);
		if (sign != '+')
			put_value(json_object_get(change, "before"));
		fputs(sign == '~' ? " -> " : "", stdout);
		if (sign == '+' || sign == '~')
			put_value(json_object_get(change, "after"));
	}
	fputs("\n", stdout);
	json_array_foreach(children, i, child)
	{
		if (depth < LIMIT_DEPLOY_NESTED)
			print_property(child, depth + 1);
	}
}

/* ---- resources ---- */

/* Without what all of them begin with. */
static const char *label(const struct deploy *d, const char *id)
{
	const char *at = id_is_within(d, id) ? strstr(id, "/providers/") : NULL;
	return at ? at + strlen("/providers/") : id;
}

static void print_line(size_t kind, const char *text)
{
	char safe[LIMIT_CLIENT_CELL];
	printf("%c %-11s %s\n", kinds[kind].sign, kinds[kind].name, shown(text, safe, sizeof(safe)));
}

static void print_summary(const size_t counts[N_KINDS])
{
	const char *between = "";
	fputs("\n", stdout);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (counts[i] > 0 || i < 3) {
			printf("%s%zu %s", between, counts[i], kinds[i].told);
			between = ", ";
		}
	}
	fputs("\n", stdout);
}

static int print_json(const struct deploy *d, json_t *changes, bool is_new)
{
	json_t *all = json_pack("{s:s,s:b,s:o}", "group", d->options->azure.group, "group_is_new", is_new, "changes",
				changes);
	const bool ok = all && json_print(all);
	json_decref(all);
	return ok ? 0 : EXIT_FAILED;
}

int plan_print(const struct deploy *d, const json_t *changes)
{
	size_t counts[N_KINDS] = {0}, i, j;
	const json_t *change, *property;
	if (d->options->json)
		return print_json(d, json_incref((json_t *)changes), false);
	json_array_foreach(changes, i, change)
	{
		const size_t kind = kind_of(json_text(change, "changeType"));
		counts[kind]++;
		print_line(kind, label(d, json_text(change, "resourceId")));
		json_array_foreach(json_object_get(change, "delta"), j, property)
		{
			print_property(property, 0);
		}
	}
	print_summary(counts);
	return usage_printed();
}

/* ---- all is new ---- */

/* Names are expressions, which Azure alone can work out. */
static void print_new(const json_t *resource)
{
	char text[2 * LIMIT_CLIENT_CELL];
	const json_t *condition = json_object_get(resource, "condition");
	snprintf(text, sizeof(text), "%s %s%s%s", json_text(resource, "type"), json_text(resource, "name"),
		 condition ? " if " : "", condition ? json_text(resource, "condition") : "");
	print_line(0, text);
}

int plan_print_template(const struct deploy *d)
{
	size_t counts[N_KINDS] = {0}, n_conditional = 0;
	const json_t *resource;
	if (d->options->json) {
		json_t *all = json_array();
		for (size_t i = 0; (resource = template_resource(d->template, i)); i++)
			json_array_append_new(all, json_pack("{s:s,s:s,s:s}", "changeType", "Create", "type",
							     json_text(resource, "type"), "name",
							     json_text(resource, "name")));
		return print_json(d, all, true);
	}
	printf("There is no resource group %s: all would be new.\n\n", d->options->azure.group);
	for (; (resource = template_resource(d->template, counts[0])); counts[0]++) {
		print_new(resource);
		n_conditional += json_object_get(resource, "condition") != NULL;
	}
	print_summary(counts);
	if (n_conditional > 0)
		printf("%zu of them only if what stands behind their names is true\n", n_conditional);
	return usage_printed();
}
