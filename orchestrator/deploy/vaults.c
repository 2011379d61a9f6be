/* A vault that is deleted keeps its name until it is purged, which purge protection forbids until a day that was set long before. */
#include <string.h>
#include <strings.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/deploy/deploy.h"

static bool is_among(const json_t *among, const char *id)
{
	size_t i;
	const json_t *item;
	json_array_foreach(among, i, item)
	{
		if (strcasecmp(json_text(item, "id"), id) == 0)
			return true;
	}
	return false;
}

static const char *name_in(const char *id)
{
	const char *slash = strrchr(id, '/');
	return slash ? slash + 1 : "";
}

/* Is it the id of a vault in our group, and of nothing in that vault? */
static bool is_here(const struct deploy *d, const char *id)
{
	char whole[LIMIT_ARM_URL];
	snprintf(whole, sizeof(whole), "/subscriptions/%s/resourceGroups/%s/providers/Microsoft.KeyVault/vaults/%s",
		 d->options->azure.subscription, d->options->azure.group, name_in(id));
	return strcasecmp(id, whole) == 0 && path_is_plain(id);
}

/* Was it in our group, and either removed by us or made by us? A vault that somebody else deleted there is theirs to purge. */
static bool is_ours(const struct deploy *d, const json_t *deleted, const json_t *among)
{
	const json_t *p = json_object_get(deleted, "properties");
	const char *id = json_text(p, "vaultId");
	return is_here(d, id) && (is_among(among, id) || tag_is_ours(p));
}

/* NULL: it was said. */
static json_t *list_ours(struct deploy *d, const json_t *among)
{
	char path[LIMIT_ARM_URL];
	path_subscription(d, "/providers/Microsoft.KeyVault/deletedVaults", DEPLOY_VAULT_VERSION, path);
	json_t *list = session_list(d, path);
	for (size_t i = json_array_size(list); i-- > 0;)
		if (!is_ours(d, json_array_get(list, i), among))
			json_array_remove(list, i);
	return list;
}

static bool is_protected(const json_t *deleted)
{
	return json_is_true(json_object_get(json_object_get(deleted, "properties"), "purgeProtectionEnabled"));
}

static void say_taken(const json_t *deleted)
{
	char name[LIMIT_CLIENT_CELL], until[64];
	shown(json_text(deleted, "name"), name, sizeof(name));
	shown(json_text(json_object_get(deleted, "properties"), "scheduledPurgeDate"), until, sizeof(until));
	printf("vault %s: deleted, and protected from being purged: its name stays taken until %s.\n"
	       "  Until then `up` in a resource group of the same name fails, unless the vault is recovered\n"
	       "  (az keyvault recover --name %s) or --set prefix=... gives all another name.\n",
	       name, until, name);
}

/* Made of the name that is_here() has looked at: what else an answer says of where it is may be about another one. */
static bool purge_path(const struct deploy *d, const char *name, const char *location, char out[LIMIT_ARM_URL])
{
	char more[LIMIT_ARM_URL / 2];
	const int n = snprintf(more, sizeof(more), "/providers/Microsoft.KeyVault/locations/%s/deletedVaults/%s/purge",
			       location, name);
	if (n >= (int)sizeof(more) || !location[0] || strchr(location, '/') || !path_is_plain(more))
		return false;
	path_subscription(d, more, DEPLOY_VAULT_VERSION, out);
	return true;
}

static bool purge(struct deploy *d, const json_t *deleted)
{
	static struct operation o;
	char path[LIMIT_ARM_URL];
	const json_t *p = json_object_get(deleted, "properties");
	const char *name = name_in(json_text(p, "vaultId"));
	if (!purge_path(d, name, json_text(p, "location"), path)) {
		say("vault %s: can't be purged: Azure does not say where it is", name);
		return false;
	}
	const bool ok = session_operate(d, &o, "POST", path, NULL) || o.call.status == 404; /* an answer was lost */
	if (ok)
		printf("vault %s: purged\n", name);
	else if (!d->is_stopped)
		errors_say_operation(name, &o);
	operation_free(&d->arm, &o);
	return ok;
}

static int purge_all(struct deploy *d, const json_t *list)
{
	size_t i;
	const json_t *deleted;
	int code = 0;
	json_array_foreach(list, i, deleted)
	{
		if (is_protected(deleted))
			say_taken(deleted);
		else if (!purge(d, deleted))
			code = EXIT_FAILED;
	}
	return code;
}

/* Those that would be purged; how many they are. */
static size_t print_loose(const json_t *list)
{
	char name[LIMIT_CLIENT_CELL];
	size_t i, n = 0;
	const json_t *deleted;
	json_array_foreach(list, i, deleted)
	{
		if (is_protected(deleted))
			continue;
		n++;
		printf("vault %s: deleted, and not purged yet\n",
		       shown(json_text(deleted, "name"), name, sizeof(name)));
	}
	return n;
}

/* Also where no vault was among them: an earlier down that was cut off may have removed it, and no more. */
int vaults_purge(struct deploy *d, const json_t *among)
{
	json_t *list = list_ours(d, among);
	if (!list)
		return EXIT_FAILED;
	int code = !among && print_loose(list) > 0 ? confirm(d, "purge them", "purged") : 0;
	if (code == 0)
		code = purge_all(d, list);
	json_decref(list);
	return code;
}
