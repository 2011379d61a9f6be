/* Taking a group from a pool: what a run would have in the body of its group goes into config maps, as far as Azure may show it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/proc/key_file.h"
#include "orchestrator/aci/standby.h"
#include "orchestrator/inside/given.h"

static struct slice text_of(const json_t *value)
{
	return slice_of(json_string_value(value), json_string_length(value));
}

/* ---- what a container is given ---- */

static void give_words(struct given *g, const json_t *command)
{
	for (size_t i = 1; i < json_array_size(command); i++) /* the first is the profile's */
		given_add(g, GIVEN_WORD, SLICE_NONE, text_of(json_array_get(command, i)));
}

/* A value that is not to be shown is none for a config map. */
static bool give_variables(struct given *g, const json_t *variables)
{
	size_t i;
	json_t *one;
	json_array_foreach(variables, i, one)
	{
		const json_t *value = json_object_get(one, "value");
		struct slice name = text_of(json_object_get(one, "name")), its = text_of(value);
		char *text = value ? malloc(name.len + 1 + its.len) : NULL;
		if (!text)
			return false;
		memcpy(text, name.ptr, name.len);
		text[name.len] = '=';
		memcpy(text + name.len + 1, its.ptr, its.len);
		given_add(g, GIVEN_VARIABLE, SLICE_NONE, slice_of(text, name.len + 1 + its.len));
		free(text);
	}
	return true;
}

static bool give_decoded(struct given *g, struct slice path, struct slice digits)
{
	size_t n;
	char *bytes = malloc(BASE64_ROOM(digits.len) + 1);
	const bool ok = bytes && base64_read(digits, bytes, BASE64_ROOM(digits.len), &n);
	if (ok)
		given_add(g, GIVEN_FILE, path, slice_of(bytes, n));
	free(bytes);
	return ok;
}

/* The policy is no secret, and the key of placeholders is good for those of this run alone, which the agent's variables have in plain.
 * The key of fingerprints is made in the group, where nobody else learns it. Anything else is left to a group of the run's own. */
static bool give_file(struct given *g, const char *dir, const char *name, const json_t *value)
{
	char path[LIMIT_GIVEN_PATH];
	const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	if (strcmp(name, "policy.yaml") == 0 || strcmp(name, "placeholder.key") == 0)
		return give_decoded(g, slice_str(path), text_of(value));
	if (strcmp(name, KEY_FILE_FINGERPRINT) != 0)
		return false;
	given_add(g, GIVEN_KEY, slice_str(path), SLICE_NONE);
	return true;
}

static bool give_files(struct given *g, const json_t *group, const json_t *mounts)
{
	size_t i;
	json_t *mount, *value;
	const char *name;
	json_array_foreach(mounts, i, mount)
	{
		const char *dir = json_string_value(json_object_get(mount, "mountPath"));
		json_object_foreach(standby_secret(group, mount), name, value)
		{
			if (!dir || !give_file(g, dir, name, value))
				return false;
		}
	}
	return true;
}

/* A container that is started again does not run it again. */
static void give_mark(struct given *g, const json_t *name)
{
	char path[LIMIT_GIVEN_PATH];
	snprintf(path, sizeof(path), STANDBY_USED "/%s", json_string_value(name));
	given_add(g, GIVEN_ONCE, slice_str(path), SLICE_NONE);
}

static json_t *given_container(const json_t *group, const json_t *one)
{
	struct given g = {0};
	const json_t *properties = json_object_get(one, "properties");
	give_mark(&g, json_object_get(one, "name"));
	give_words(&g, json_object_get(properties, "command"));
	g.failed = g.failed || !give_variables(&g, json_object_get(properties, "environmentVariables")) ||
		   !give_files(&g, group, json_object_get(properties, "volumeMounts"));
	char *text = given_text(&g);
	json_t *made = text ? json_pack("{s:O, s:{s:{s:{s:s}}}}", "name", json_object_get(one, "name"), "properties",
					"configMap", "keyValuePairs", STANDBY_KEY, text)
			    : NULL;
	free(text);
	return made;
}

/* ---- the group ---- */

static json_t *given_containers(const json_t *group)
{
	size_t i;
	json_t *one, *list = json_array();
	json_array_foreach(json_object_get(json_object_get(group, "properties"), "containers"), i, one)
	{
		json_t *given = given_container(group, one);
		if (!given || json_array_append_new(list, given) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *make_body(const struct aci_options *o, const json_t *group, const char *name, json_t *containers)
{
	char pool[LIMIT_ARM_URL], profile[LIMIT_ARM_URL];
	const json_t *identity = json_object_get(group, "identity");
	standby_id(o, STANDBY_TYPE, name, pool);
	standby_id(o, PROFILE_TYPE, name, profile);
	json_t *body = json_pack("{s:O, s:O, s:{s:{s:s}, s:{s:s, s:i}, s:o}}", "location",
				 json_object_get(group, "location"), "tags", json_object_get(group, "tags"),
				 "properties", "standbyPoolProfile", "id", pool, "containerGroupProfile", "id", profile,
				 "revision", STANDBY_REVISION, "containers", containers);
	if (body && identity)
		json_object_set(body, "identity", (json_t *)identity);
	return body;
}

json_t *standby_take(const struct aci *a, const json_t *group, char name[STANDBY_NAME])
{
	const struct aci_options *o = a->options;
	json_t *profile = standby_why_not(o) ? NULL : standby_profile(o, group, name);
	const bool is_there = profile && words_has(&o->standby, name);
	json_decref(profile);
	json_t *containers = is_there ? given_containers(group) : NULL;
	return containers ? make_body(o, group, name, containers) : NULL;
}
