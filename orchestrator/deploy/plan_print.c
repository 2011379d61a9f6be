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

static void print_new(const struct deploy *d, const json_t *resource, bool is_sure)
{
	char name[LIMIT_CLIENT_CELL], text[2 * LIMIT_CLIENT_CELL];
	plan_name(d, resource, name);
	snprintf(text, sizeof(text), "%s %s%s", json_text(resource, "type"), name,
		 is_sure ? "" : " (if its condition holds)");
	print_line(0, text);
}

static int print_new_json(const struct deploy *d)
{
	char name[LIMIT_CLIENT_CELL], by[LIMIT_DEPLOY_NAME];
	const json_t *resource;
	json_t *all = json_array();
	for (size_t i = 0; (resource = template_resource(d->template, i)); i++) {
		plan_name(d, resource, name);
		if (plan_wanted(d, resource, by) != PLAN_OFF)
			json_array_append_new(all, json_pack("{s:s,s:s,s:s}", "changeType", "Create", "type",
							     json_text(resource, "type"), "name", name));
	}
	return print_json(d, all, true);
}

/* How many the parameters leave out, and which of them do. */
static void print_off(size_t n, const struct words *by)
{
	if (n == 0)
		return;
	printf("%zu more of the template are not made", n);
	for (size_t i = 0; i < by->n; i++)
		printf("%s %s", i > 0 ? "," : ", as parameters say:", by->list[i]);
	fputs("\n", stdout);
}

int plan_print_template(const struct deploy *d)
{
	size_t counts[N_KINDS] = {0}, n_off = 0;
	char by[LIMIT_DEPLOY_NAME];
	struct words off = {0};
	const json_t *resource;
	if (d->options->json)
		return print_new_json(d);
	printf("There is no resource group %s: all would be new.\n\n", d->options->azure.group);
	for (size_t i = 0; (resource = template_resource(d->template, i)); i++) {
		const enum plan_wanted wanted = plan_wanted(d, resource, by);
		n_off += wanted == PLAN_OFF;
		if (wanted == PLAN_OFF && by[0] && !words_has(&off, by))
			words_add(&off, "%s", by);
		if (wanted == PLAN_OFF)
			continue;
		print_new(d, resource, wanted == PLAN_WANTED);
		counts[0]++;
	}
	print_summary(counts);
	print_off(n_off, &off);
	if (!d->options->location)
		printf("up will want --location, to make the resource group\n");
	words_free(&off);
	return usage_printed();
}
