/* Secrets of a Key Vault that Azure itself reads, when it makes the group (--vault-secrets reference): the identity, the addresses and the
 * names of variables are in the body, the values in the environment of the proxy alone, which asks no vault then. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/policy/policy.h"
#include "orchestrator/aci/aci.h"

#define REFERENCE "vault-%zu"

/* NUMBER=URL of each secret of the policy that is in a vault, by its place among all. */
static void add_urls(const struct policy *p, struct words *out)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from == SECRET_KEYVAULT)
			words_add(out, "%zu=%.*s", i, SLICE_FMT(p->secrets[i].source));
}

bool vault_read(struct aci *a)
{
	struct arena arena;
	struct policy_errors *errs = aci_refers(a->options) ? calloc(1, sizeof(*errs)) : NULL;
	if (!errs)
		return !aci_refers(a->options);
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(a->options->run.policy, &arena, clock_wall_s(), NULL, errs);
	if (p)
		add_urls(p, &a->vault_urls);
	else
		policy_errors_print(errs, STDERR_FILENO);
	arena_free(&arena);
	free(errs);
	return p && !a->vault_urls.failed;
}

/* The last of the identities is the proxy's. Without a proxy there is nobody who could have them. */
void vault_add(const struct aci *a, json_t *properties, json_t *proxy)
{
	const struct words *ids = &a->options->identities;
	if (!proxy || !aci_refers(a->options))
		return;
	json_t *list = json_array(), *variables = json_object_get(proxy, "environmentVariables");
	char name[64], variable[64];
	for (size_t i = 0; i < a->vault_urls.n; i++) {
		char *url = NULL;
		const size_t at = strtoul(a->vault_urls.list[i], &url, 10);
		snprintf(name, sizeof(name), REFERENCE, at);
		snprintf(variable, sizeof(variable), POLICY_VAULT_VARIABLE, at);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", name, "identity",
						      ids->list[ids->n - 1], "secretReferenceUri", url + 1));
		json_array_append_new(variables,
				      json_pack("{s:s, s:s}", "name", variable, "secureValueReference", name));
	}
	if (json_array_size(list) > 0)
		json_object_set(properties, "secretReferences", list);
	json_decref(list);
	json_array_append_new(json_object_get(proxy, "command"), json_string("--vault-variables"));
}
