/* `from: {keyvault: URL}` of a secret. A token that opens the vault is sent there, so only the vaults of Azure may be named, in any
 * of its clouds, and hosts that the policy itself pins to an address. */
#include "core/policy/keyvault.h"

#include <stdio.h>

#include "core/base/text.h"
#include "core/policy/load.h"

#define HTTPS_PORT 443
#define EXAMPLE "https://VAULT.vault.azure.net/secrets/NAME"

/* Each with the resource that its tokens are for. */
static const struct cloud {
	struct slice domain, resource;
} clouds[] = {
	{WORD(".vault.azure.net"), WORD("https://vault.azure.net")},
	{WORD(".vault.azure.cn"), WORD("https://vault.azure.cn")},
	{WORD(".vault.usgovcloudapi.net"), WORD("https://vault.usgovcloudapi.net")},
	{WORD(".vault.microsoftazure.de"), WORD("https://vault.microsoftazure.de")},
};

struct slice keyvault_resource(struct slice host)
{
	for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		const struct cloud *c = &clouds[i];
		if (host.len > c->domain.len && slice_ends(host, c->domain) &&
		    slice_find(host, '.') == host.len - c->domain.len)
			return c->resource;
	}
	return SLICE_NONE;
}

/* ---- the address ---- */

static bool is_object_name(struct slice s, size_t min, size_t max, const char *also)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i], low = ascii_lower(c);
		if (!ascii_is_digit(c) && !(low >= 'a' && low <= 'z') && !(c && strchr(also, c)))
			return false;
	}
	return s.len >= min && s.len <= max;
}

static bool is_secret_path(struct slice path)
{
	struct slice rest = slice_from(path, sizeof("/secrets/") - 1);
	if (!slice_starts(path, SLICE("/secrets/")))
		return false;
	bool has_version = slice_find(rest, '/') < rest.len;
	struct slice name = slice_cut(&rest, '/');
	return is_object_name(name, 1, LIMIT_KEYVAULT_NAME, "-") &&
	       (!has_version || is_object_name(rest, LIMIT_KEYVAULT_VERSION, LIMIT_KEYVAULT_VERSION, ""));
}

/* Only one spelling: what another reader could take for something else is refused, though we would not. */
static const char *fault_of(struct slice text, const struct target *t)
{
	if (t->scheme != SCHEME_HTTPS)
		return "the scheme is not https";
	if (t->host.kind != HOST_NAME)
		return "the host is an address";
	if (t->port != HTTPS_PORT)
		return "the port is not 443";
	if (slice_find(text, '?') < text.len)
		return "it has a query";
	if (slice_find(text, '%') < text.len || text_contains(text, SLICE("/.")))
		return "it is not in its plain form";
	return is_secret_path(t->path) ? NULL : "the path is not /secrets/NAME or /secrets/NAME/VERSION";
}

enum cage_status keyvault_url_parse(struct slice text, struct arena *arena, struct target *out, const char **why)
{
	enum cage_status st = url_parse(text, arena, out, why);
	if (st != CAGE_OK)
		return st;
	*why = fault_of(text, out);
	return *why ? CAGE_EPROTO : CAGE_OK;
}

/* ---- in a policy ---- */

static struct slice canonical(struct loader *l, const struct target *t)
{
	size_t room = sizeof("https://") + t->host.text.len + t->path.len;
	char *out = load_keep(l, room, 1);
	struct text text = text_in(out, out ? room : 0);
	text_put(&text, SLICE("https://"));
	text_put(&text, t->host.text);
	text_put(&text, t->path);
	return slice_of(out, out ? text.len : 0);
}

void keyvault_read(struct loader *l, const struct node *value, void *out)
{
	struct policy_secret *s = out;
	const char *why = "";
	struct target *t = load_keep(l, 1, sizeof(*t));
	if (!t || !text_check(l, value, "an address such as " EXAMPLE))
		return;
	enum cage_status st = keyvault_url_parse(value->text, l->arena, t, &why);
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else if (st != CAGE_OK)
		node_error(l->errs, value, "expected an address such as " EXAMPLE ": %s, got %s", why,
			   quote(value->text).text);
	if (st != CAGE_OK)
		return;
	s->from = SECRET_KEYVAULT;
	s->vault = t;
	s->source = canonical(l, t);
}

void keyvault_use_variable(struct loader *l, size_t i)
{
	const size_t room = sizeof(POLICY_VAULT_VARIABLE) + 20;
	char *name = load_keep(l, room, 1);
	if (!name)
		return;
	snprintf(name, room, POLICY_VAULT_VARIABLE, i);
	l->policy->secrets[i].from = SECRET_ENV;
	l->policy->secrets[i].source = slice_str(name);
}

static void check_host(struct loader *l, const struct policy_secret *s, const struct node *at)
{
	bool is_pinned = policy_pin_for(l->policy, &s->vault->host) != NULL;
	if (!is_pinned && !keyvault_resource(s->vault->host.text).ptr)
		node_error(l->errs, at,
			   "%s is not a vault of Azure (NAME.vault.azure.net, or that of another cloud), and "
			   "upstream.resolve does not pin it",
			   quote(s->vault->host.text).text);
	else if (!is_pinned && !policy_asks_resolvers(l->policy))
		node_error(l->errs, at, "with upstream.bound the host of the vault needs a pin in upstream.resolve");
}

void keyvaults_check(struct loader *l)
{
	for (size_t i = 0; i < l->policy->n_secrets; i++)
		if (l->policy->secrets[i].vault)
			check_host(l, &l->policy->secrets[i],
				   node_get(node_get(l->secret_nodes[i], SLICE("from")), SLICE("keyvault")));
}
