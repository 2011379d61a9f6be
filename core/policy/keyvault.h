/* Addresses of secrets in Azure Key Vault: https://VAULT.vault.azure.net/secrets/NAME, with /VERSION behind it or without. */
#ifndef CAGE_POLICY_KEYVAULT_H
#define CAGE_POLICY_KEYVAULT_H

#include "core/http/url.h"

/* An https URL of a named host at its usual port, whose path is that of a secret and nothing else. Which host it is is not looked
 * at. CAGE_OK, CAGE_ENOMEM, or another one with *why, a static clause. */
enum cage_status keyvault_url_parse(struct slice text, struct arena *arena, struct target *out,
				    const char **why) MUST_CHECK;

/* What a token for the vault of that host has to be asked for: "https://vault.azure.net". ptr NULL: it is not one of Azure's
 * vaults. */
struct slice keyvault_resource(struct slice host);

#endif
