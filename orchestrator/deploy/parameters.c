/* Names, types, bounds. */
#include "orchestrator/deploy/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/base/wipe.h"
#include "core/policy/load.h"
#include "orchestrator/client/file_text.h"

static const struct kind {
	const char *name, *wanted;
	bool is_secure, is_text;
	json_type type; /* JSON_TRUE: or JSON_FALSE */
} kinds[] = {{"string", "text", false, true, JSON_STRING},
	     {"securestring", "text", true, true, JSON_STRING},
	     {"int", "an integer", false, false, JSON_INTEGER},
	     {"bool", "true or false", false, false, JSON_TRUE},
	     {"array", "a list, as JSON", false, false, JSON_ARRAY},
	     {"object", "an object, as JSON", false, false, JSON_OBJECT},
	     {"secureobject", "an object, as JSON", true, false, JSON_OBJECT}};

#define A_FILE "expected {\"parameters\": {\"NAME\": {\"value\": ...}}}"

void parameters_fault(struct parameters *p, const char *name, const char *what, const char *hint)
{
	p->faults++;
	json_object_set_new(p->wrong, name, json_true());
	if (p->file)
		say("--parameters %s: parameter %s: %s%s", p->file, name, what, hint);
	else
		say("parameter %s: %s%s", name, what, hint);
}

/* ---- what is known of it ---- */

const json_t *parameters_value(const struct parameters *p, const char *name)
{
	const json_t *given = json_object_get(p->values, name);
	return given ? json_object_get(given, "value")
		     : json_object_get(json_object_get(p->declared, name), "defaultValue");
}

const char *parameters_text(const struct parameters *p, const char *name)
{
	const char *text = json_string_value(parameters_value(p, name));
	return text && text[0] ? text : NULL;
}

/* ---- the declaration ---- */

static const json_t *find(struct parameters *p, const char *name)
{
	const char *known;
	json_t *declaration;
	struct near near = {.text = slice_str(name)};
	const json_t *found = json_object_get(p->declared, name);
	if (found)
		return found;
	json_object_foreach((json_t *)p->declared, known, declaration)
	{
		near_try(&near, slice_str(known));
		if (strcasecmp(known, name) == 0)
			near = (struct near){.text = near.text, .word = slice_str(known)};
	}
	parameters_fault(p, name, "the template has none of that name", near_hint(&near).text);
	return NULL;
}

static const struct kind *kind_of(struct parameters *p, const char *name, const json_t *declaration)
{
	const char *type = json_string_value(json_object_get(declaration, "type"));
	for (size_t i = 0; type && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcasecmp(type, kinds[i].name) == 0)
			return &kinds[i];
	parameters_fault(p, name, "the template gives it a type that is not known", "");
	return NULL;
}

/* ---- a value ---- */

static bool has_type(const struct kind *k, const json_t *value)
{
	return json_typeof(value) == k->type || (k->type == JSON_TRUE && json_is_false(value));
}

static bool is_allowed(const json_t *declaration, const json_t *value)
{
	size_t i;
	const json_t *one, *allowed = json_object_get(declaration, "allowedValues");
	json_array_foreach(allowed, i, one)
	{
		if (json_equal(one, value))
			return true;
	}
	return !allowed;
}

/* "Basic, Standard or Premium" would be nicer; a list of JSON is exact. */
static void fault_allowed(struct parameters *p, const char *name, const json_t *declaration)
{
	char *list = json_dumps(json_object_get(declaration, "allowedValues"), JSON_COMPACT | JSON_ENSURE_ASCII);
	parameters_fault(p, name, "expected one of ", list ? list : "those that the template lists");
	free(list);
}

/* In letters, or in items of a list. */
static json_int_t length_of(const json_t *value)
{
	json_int_t n = (json_int_t)json_array_size(value);
	for (const char *c = json_string_value(value); c && *c; c++)
		n += ((unsigned char)*c & 0xc0) != 0x80;
	return n;
}

static bool is_between(const json_t *declaration, const char *least, const char *most, json_int_t n)
{
	const json_t *low = json_object_get(declaration, least), *high = json_object_get(declaration, most);
	return (!json_is_integer(low) || n >= json_integer_value(low)) &&
	       (!json_is_integer(high) || n <= json_integer_value(high));
}

/* "2 to 8", "at least 2" or "at most 8". */
static void bounds_format(const json_t *declaration, const char *least, const char *most, char *out, size_t room)
{
	const json_t *low = json_object_get(declaration, least), *high = json_object_get(declaration, most);
	const long long from = json_integer_value(low), to = json_integer_value(high);
	if (json_is_integer(low) && json_is_integer(high))
		snprintf(out, room, "%lld to %lld", from, to);
	else
		snprintf(out, room, "%s %lld", json_is_integer(low) ? "at least" : "at most", from + to);
}

static void fault_number(struct parameters *p, const char *name, const json_t *declaration)
{
	char bounds[64];
	bounds_format(declaration, "minValue", "maxValue", bounds, sizeof(bounds));
	parameters_fault(p, name, "expected a number, ", bounds);
}

/* How long a secret is, is not said. */
static void fault_length(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k,
			 const json_t *value)
{
	char bounds[64], text[160];
	bounds_format(declaration, "minLength", "maxLength", bounds, sizeof(bounds));
	const int n = snprintf(text, sizeof(text), "%s %s", bounds, k->is_text ? "characters" : "items");
	if (!k->is_secure)
		snprintf(text + n, sizeof(text) - (size_t)n, ", and it has %lld", (long long)length_of(value));
	parameters_fault(p, name, "expected ", text);
}

static bool is_good(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k,
		    const json_t *value)
{
	const unsigned before = p->faults;
	if (!value || !has_type(k, value))
		parameters_fault(p, name, "expected ", k->wanted);
	else if (!is_allowed(declaration, value))
		fault_allowed(p, name, declaration);
	else if (json_is_integer(value) && !is_between(declaration, "minValue", "maxValue", json_integer_value(value)))
		fault_number(p, name, declaration);
	else if ((json_is_string(value) || json_is_array(value)) &&
		 !is_between(declaration, "minLength", "maxLength", length_of(value)))
		fault_length(p, name, declaration, k, value);
	return p->faults == before;
}

static void put(struct parameters *p, const char *name, const char *key, json_t *value)
{
	if (json_object_set_new(p->values, name, json_pack("{s:O}", key, value)) != 0)
		parameters_fault(p, name, "no memory", "");
}

/* value: the caller's; NULL: it could not be read as its type wants it. */
static void take(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k, json_t *value)
{
	if (!is_good(p, name, declaration, k, value))
		return;
	if (k->is_secure && !secure_add(p->secure, value))
		parameters_fault(p, name, "a secure value has at least 8 bytes", "");
	p->has_secure |= k->is_secure;
	put(p, name, "value", value);
}

/* ---- from the command line ---- */

static json_t *convert(const struct kind *k, enum parameter_from from, const char *text, size_t len)
{
	if (k->is_secure && from == FROM_FILE && len > 0 && text[len - 1] == '\n')
		len--; /* the editor's */
	return k->is_text ? json_stringn(text, len)
			  : json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

static void take_file(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k,
		      const char *path)
{
	char about[LIMIT_DEPLOY_NAME + 32];
	size_t len = 0;
	snprintf(about, sizeof(about), "parameter %s: --set-file", name);
	char *text = file_text(about, path, &len);
	if (!text) {
		p->faults++;
		json_object_set_new(p->wrong, name, json_true());
		return;
	}
	json_t *value = convert(k, FROM_FILE, text, len);
	take(p, name, declaration, k, value);
	json_decref(value);
	wipe_free(text);
}

static void take_variable(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k,
			  const char *variable)
{
	char *text = getenv(variable);
	if (!text) {
		parameters_fault(p, name, "there is no variable ", variable);
		return;
	}
	json_t *value = convert(k, FROM_VARIABLE, text, strlen(text));
	take(p, name, declaration, k, value);
	json_decref(value);
}

static void take_word(struct parameters *p, const char *name, const json_t *declaration, const struct kind *k,
		      const char *text)
{
	if (k->is_secure) {
		parameters_fault(
			p, name,
			"it is secure, and command lines can be read by everybody: use --set-file or --set-env", "");
		return;
	}
	json_t *value = convert(k, FROM_WORD, text, strlen(text));
	take(p, name, declaration, k, value);
	json_decref(value);
}

void parameters_set(struct parameters *p, enum parameter_from from, const char *given)
{
	char name[LIMIT_DEPLOY_NAME];
	struct slice rest = slice_str(given), head = slice_cut(&rest, '=');
	if (head.len == 0 || head.len >= sizeof(name) || head.len == strlen(given)) {
		parameters_fault(p, "", "expected NAME=VALUE", "");
		return;
	}
	memcpy(name, head.ptr, head.len);
	name[head.len] = '\0';
	const json_t *declaration = find(p, name);
	const struct kind *k = declaration ? kind_of(p, name, declaration) : NULL;
	const char *value = given + head.len + 1;
	if (!k)
		return;
	if (from == FROM_WORD)
		take_word(p, name, declaration, k, value);
	else if (from == FROM_FILE)
		take_file(p, name, declaration, k, value);
	else
		take_variable(p, name, declaration, k, value);
}

/* ---- a file of them ---- */

static void take_entry(struct parameters *p, const char *name, json_t *entry)
{
	json_t *reference = json_object_get(entry, "reference"), *value = json_object_get(entry, "value");
	const json_t *declaration = find(p, name);
	const struct kind *k = declaration ? kind_of(p, name, declaration) : NULL;
	if (!k || json_object_get(p->values, name))
		return;
	if (!value == !reference)
		parameters_fault(p, name, "expected {\"value\": ...} or {\"reference\": ...}", "");
	else if (reference)
		put(p, name, "reference", reference);
	else
		take(p, name, declaration, k, value);
}

static bool is_template(const json_t *document)
{
	const char *schema = json_string_value(json_object_get(document, "$schema"));
	return json_object_get(document, "resources") || (schema && strstr(schema, "deploymentTemplate.json"));
}

bool parameters_take(struct parameters *p, const char *path, const json_t *document)
{
	const char *name;
	json_t *entry;
	const json_t *entries = json_object_get(document, "parameters");
	if (!json_is_object(entries) || is_template(document)) {
		p->faults++;
		say("--parameters %s: %s: " A_FILE, path,
		    is_template(document) ? "it is a template, and no file of parameters" : "it has no parameters");
		return false;
	}
	p->file = path;
	json_object_foreach((json_t *)entries, name, entry)
	{
		take_entry(p, name, entry);
	}
	p->file = NULL;
	return true;
}

void parameters_check(struct parameters *p)
{
	const char *name;
	json_t *declaration;
	json_object_foreach((json_t *)p->declared, name, declaration)
	{
		if (!json_object_get(declaration, "defaultValue") &&
		    !json_is_true(json_object_get(declaration, "nullable")) && !json_object_get(p->values, name) &&
		    !json_object_get(p->wrong, name))
			parameters_fault(p, name, "it has no default, and was not given", "");
	}
}
