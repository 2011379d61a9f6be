/* From the body of a group to that of the profile of groups that wait, and its name. */
#include "orchestrator/aci/standby.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS "tools" /* the volume with our programs, ... */
#define TOOLS_PATH "/cage"
#define INSIDE "/cage/cage-inside"
#define USED "used" /* that of STANDBY_USED */
#define NAME_DIGITS 16

void standby_id(const struct aci_options *o, const char *type, const char *name, char out[LIMIT_ARM_URL])
{
	snprintf(out, LIMIT_ARM_URL, "/subscriptions/%s/resourceGroups/%s/providers/%s/%s", o->azure.subscription,
		 o->azure.group, type, name);
}

/* Config maps of a confidential group are no part of what its hardware vouches for, says Azure. */
const char *standby_why_not(const struct aci_options *o)
{
	if (aci_is_split(o))
		return "there are no pools of the topology split";
	if (o->registry_username) /* and its name would depend on it */
		return "the profile of a pool would keep the registry's password";
	return strcmp(o->sku, "Standard") == 0 ? NULL : "there are no pools of confidential groups";
}

json_t *standby_secret(const json_t *group, const json_t *mount)
{
	size_t i;
	json_t *volume;
	json_array_foreach(json_object_get(json_object_get(group, "properties"), "volumes"), i, volume)
	{
		if (json_equal(json_object_get(volume, "name"), json_object_get(mount, "name")))
			return json_object_get(volume, "secret");
	}
	return NULL;
}

/* ---- containers ---- */

/* What its command begins with stays what it was: that of the agent is the gate. */
static json_t *waiting_command(const struct aci_options *o, const json_t *container)
{
	const json_t *command = json_object_get(json_object_get(container, "properties"), "command");
	return json_pack("[s, s, s+++, s, O]", INSIDE, "--await", o->map_dir, "/",
			 json_string_value(json_object_get(container, "name")), "/" STANDBY_KEY, "--",
			 json_array_get(command, 0));
}

/* Files that a volume of secrets would have are written when they are given; our program has to be there, and a place for its mark. */
static void open_mounts(const json_t *group, json_t *mounts)
{
	size_t i;
	json_t *mount;
	bool has_tools = false;
	json_array_foreach(mounts, i, mount)
	{
		const char *name = json_string_value(json_object_get(mount, "name"));
		has_tools = has_tools || (name && strcmp(name, TOOLS) == 0);
		if (standby_secret(group, mount))
			json_object_set_new(mount, "readOnly", json_false());
	}
	if (!has_tools)
		json_array_append_new(
			mounts, json_pack("{s:s, s:s, s:b}", "name", TOOLS, "mountPath", TOOLS_PATH, "readOnly", 1));
	json_array_append_new(mounts,
			      json_pack("{s:s, s:s, s:b}", "name", USED, "mountPath", STANDBY_USED, "readOnly", 0));
}

static void let_wait(const struct aci_options *o, const json_t *group, json_t *containers)
{
	size_t i;
	json_t *one;
	json_array_foreach(containers, i, one)
	{
		json_t *properties = json_object_get(one, "properties");
		json_object_set_new(properties, "command", waiting_command(o, one));
		json_object_set_new(properties, "environmentVariables", json_array());
		open_mounts(group, json_object_get(properties, "volumeMounts"));
	}
}

static void empty_volumes(json_t *volumes)
{
	size_t i;
	json_t *volume;
	json_array_foreach(volumes, i, volume)
	{
		if (json_object_del(volume, "secret") == 0)
			json_object_set_new(volume, "emptyDir", json_object());
	}
	json_array_append_new(volumes, json_pack("{s:s, s:{}}", "name", USED, "emptyDir"));
}

/* ---- the profile ---- */

/* False: a group has something that a profile can't have, and a pool has not. */
static bool fits(const json_t *properties)
{
	static const char *const known[] = {"sku",        "osType",  "restartPolicy", "initContainers",
					    "containers", "volumes", "subnetIds",     "imageRegistryCredentials"};
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)properties, name, value)
	{
		size_t i = 0;
		while (i < sizeof(known) / sizeof(known[0]) && strcmp(name, known[i]) != 0)
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
			return false;
	}
	return true;
}

/* All that the groups of a pool are made of, and whose it is. */
static bool make_name(const struct aci_options *o, const json_t *profile, char out[STANDBY_NAME])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	char *text = json_dumps(profile, JSON_COMPACT | JSON_SORT_KEYS);
	const char *subnet = o->subnet ? o->subnet : "";
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const bool ok = text && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
			EVP_DigestUpdate(ctx, text, strlen(text) + 1) &&
			EVP_DigestUpdate(ctx, subnet, strlen(subnet)) && EVP_DigestFinal_ex(ctx, sum, &n);
	EVP_MD_CTX_free(ctx);
	free(text);
	snprintf(out, STANDBY_NAME, "cage-");
	for (size_t i = 0; ok && i < NAME_DIGITS / 2; i++)
		snprintf(out + strlen("cage-") + 2 * i, 3, "%02x", sum[i]);
	return ok;
}

json_t *standby_profile(const struct aci_options *o, const json_t *group, char name[STANDBY_NAME])
{
	json_t *properties = json_deep_copy(json_object_get(group, "properties"));
	if (!properties || !fits(properties)) {
		json_decref(properties);
		return NULL;
	}
	json_object_del(properties, "subnetIds"); /* the pool's */
	let_wait(o, group, json_object_get(properties, "containers"));
	empty_volumes(json_object_get(properties, "volumes"));
	json_t *body = json_pack("{s:O, s:{s:s}, s:o}", "location", json_object_get(group, "location"), "tags",
				 ACI_TAG_STATE, o->state, "properties", properties);
	if (body && make_name(o, body, name))
		return body;
	json_decref(body);
	return NULL;
}
