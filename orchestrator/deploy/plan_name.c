/* What a template says of a resource, as far as it can be worked out here: text, parameters, format() and concat(). All else only Azure can
 * tell, and is shown as "...". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/text.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"
#include "orchestrator/deploy/parameters.h"

#define UNKNOWN "..."

struct reader {
	const char *at;
	const struct parameters *p;
	bool failed; /* it is no expression that is known here */
};

/* What an argument came to: text, cut where it is too long. */
struct argument {
	char text[LIMIT_CLIENT_CELL];
};

static void read_value(struct reader *r, unsigned depth, struct argument *out);

static void set(struct argument *out, struct slice text)
{
	const size_t n = text.len < sizeof(out->text) ? text.len : sizeof(out->text) - 1;
	memmove(out->text, text.ptr, n);
	out->text[n] = '\0';
}

static bool skip(struct reader *r, char c)
{
	while (*r->at == ' ')
		r->at++;
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

/* ---- functions ---- */

/* No secure one, and none whose default is an expression itself. */
static void work_out_parameter(const struct reader *r, const char *name, struct argument *out)
{
	const char *type = json_text(json_object_get(r->p->declared, name), "type");
	const char *text = parameters_text(r->p, name);
	set(out, text && text[0] != '[' && strcasecmp(type, "string") == 0 ? slice_str(text) : SLICE(UNKNOWN));
}

/* {0}, {1} and so on. */
static void work_out_format(const struct argument *args, size_t n, struct argument *out)
{
	struct text t = text_in(out->text, sizeof(out->text) - 1);
	for (const char *c = args[0].text; *c; c++) {
		if (c[0] == '{' && isdigit((unsigned char)c[1]) && c[2] == '}') {
			const size_t i = (size_t)(c[1] - '0') + 1;
			text_put(&t, i < n ? slice_str(args[i].text) : SLICE(UNKNOWN));
			c += 2;
		} else {
			text_put(&t, slice_of(c, 1));
		}
	}
	out->text[t.len] = '\0';
}

static void work_out_concat(const struct argument *args, size_t n, struct argument *out)
{
	struct text t = text_in(out->text, sizeof(out->text) - 1);
	for (size_t i = 0; i < n; i++)
		text_put(&t, slice_str(args[i].text));
	out->text[t.len] = '\0';
}

static void work_out(const struct reader *r, struct slice name, const struct argument *args, size_t n,
		     struct argument *out)
{
	if (n == 1 && slice_eq(name, SLICE("parameters")))
		work_out_parameter(r, args[0].text, out);
	else if (n > 0 && slice_eq(name, SLICE("format")))
		work_out_format(args, n, out);
	else if (n > 0 && slice_eq(name, SLICE("concat")))
		work_out_concat(args, n, out);
	else
		set(out, SLICE(UNKNOWN));
}

/* ---- expressions ---- */

/* Quotes in it are doubled. */
static void read_text(struct reader *r, struct argument *out)
{
	struct text t = text_in(out->text, sizeof(out->text) - 1);
	for (; *r->at && (r->at[0] != '\'' || r->at[1] == '\''); r->at++) {
		text_put(&t, slice_of(r->at, 1));
		r->at += *r->at == '\'';
	}
	out->text[t.len] = '\0';
	r->failed |= !skip(r, '\'');
}

/* Behind the opening parenthesis. */
static void read_call(struct reader *r, struct slice name, unsigned depth, struct argument *out)
{
	struct argument *args = calloc(LIMIT_DEPLOY_ARGUMENTS, sizeof(*args));
	size_t n = 0;
	r->failed |= !args;
	for (bool more = !skip(r, ')'); more && !r->failed; more = skip(r, ',')) {
		r->failed |= n == LIMIT_DEPLOY_ARGUMENTS;
		if (!r->failed)
			read_value(r, depth, &args[n++]);
	}
	r->failed |= n > 0 && !skip(r, ')');
	if (!r->failed)
		work_out(r, name, args, n, out);
	free(args);
}

static void read_value(struct reader *r, unsigned depth, struct argument *out)
{
	const char *start;
	out->text[0] = '\0';
	if (skip(r, '\'')) {
		read_text(r, out);
		return;
	}
	for (start = r->at; isalnum((unsigned char)*r->at); r->at++)
		;
	const struct slice word = slice_of(start, (size_t)(r->at - start));
	if (skip(r, '(') && depth < LIMIT_DEPLOY_NESTED)
		read_call(r, word, depth + 1, out);
	else if (word.len > 0 && isdigit((unsigned char)*start))
		set(out, word);
	else
		r->failed = true;
	r->failed |= *r->at == '.' || *r->at == '['; /* a part of what it is */
}

void plan_name(const struct deploy *d, const json_t *resource, char out[LIMIT_CLIENT_CELL])
{
	const struct parameters p = {.declared = json_object_get(d->template, "parameters"), .values = d->values};
	const char *name = json_text(resource, "name");
	struct argument found;
	struct reader r = {.at = name, .p = &p};
	if (skip(&r, '[')) {
		read_value(&r, 0, &found);
		r.failed |= !skip(&r, ']') || *r.at;
		name = r.failed ? UNKNOWN : found.text;
	}
	snprintf(out, LIMIT_CLIENT_CELL, "%s", name);
}

/* ---- is it made? ---- */

/* The name of the parameter that stands between them. */
static bool between(const char *text, const char *before, const char *behind, char out[LIMIT_DEPLOY_NAME])
{
	const size_t n = strlen(text), head = strlen(before), tail = strlen(behind);
	if (n < head + tail || n - head - tail >= LIMIT_DEPLOY_NAME || strncmp(text, before, head) != 0 ||
	    strcmp(text + n - tail, behind) != 0)
		return false;
	snprintf(out, LIMIT_DEPLOY_NAME, "%.*s", (int)(n - head - tail), text + head);
	return true;
}

enum plan_wanted plan_wanted(const struct deploy *d, const json_t *resource, char by[LIMIT_DEPLOY_NAME])
{
	const struct parameters p = {.declared = json_object_get(d->template, "parameters"), .values = d->values};
	const json_t *condition = json_object_get(resource, "condition"), *value;
	const char *text = condition ? json_text(resource, "condition") : "";
	by[0] = '\0';
	if (!condition || json_is_true(condition))
		return PLAN_WANTED;
	if (json_is_false(condition))
		return PLAN_OFF;
	if (between(text, "[parameters('", "')]", by)) {
		value = parameters_value(&p, by);
		return json_is_true(value) ? PLAN_WANTED : json_is_false(value) ? PLAN_OFF : PLAN_PERHAPS;
	}
	if (!between(text, "[not(empty(parameters('", "')))]", by))
		return PLAN_PERHAPS;
	value = parameters_value(&p, by);
	if (!json_is_string(value) || json_string_value(value)[0] == '[')
		return PLAN_PERHAPS;
	return json_string_length(value) > 0 ? PLAN_WANTED : PLAN_OFF;
}
