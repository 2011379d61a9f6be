/* backends.aci: its keys are options of cage-aci. What that would refuse is refused here, where its place is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/aci/settings.h"
#include "orchestrator/service/backend_aci.h"
#include "orchestrator/service/config_private.h"

/* ---- options ---- */

static void read_word(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	config_option(l, value, value->key, &aci_maker.options);
}

static void read_path(struct loader *l, const struct node *value, void *out)
{
	char path[CONFIG_PATH] = "";
	config_path(l, value, path);
	if (path[0] == '/')
		read_word(l, value, out);
}

static void read_regions(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	if (!list_check(l, value, "regions"))
		return;
	for (const struct node *item = value->first; item; item = item->next)
		config_option(l, item, SLICE("region"), &aci_maker.options);
}

/* One, or a list. */
static void read_identities(struct loader *l, const struct node *value, void *out)
{
	if (value->kind == NODE_TEXT) {
		read_word(l, value, out);
		return;
	}
	if (!list_check(l, value, "identities"))
		return;
	for (const struct node *item = value->first; item; item = item->next)
		config_option(l, item, SLICE("identity"), &aci_maker.options);
}

/* What is needed depends on the topology, and is told by the judgement. */
static const struct key keys[] = {
	{WORD("subscription"), read_word, KEY_OPTIONAL},
	{WORD("group"), read_word, KEY_OPTIONAL},
	{WORD("regions"), read_regions, KEY_OPTIONAL},
	{WORD("image"), read_word, KEY_OPTIONAL},
	{WORD("proxy_image"), read_word, KEY_OPTIONAL},
	{WORD("dns_image"), read_word, KEY_OPTIONAL},
	{WORD("gate_image"), read_word, KEY_OPTIONAL},
	{WORD("subnet"), read_word, KEY_OPTIONAL},
	{WORD("identity"), read_identities, KEY_OPTIONAL},
	{WORD("registry"), read_word, KEY_OPTIONAL},
	{WORD("sku"), read_word, KEY_OPTIONAL},
	{WORD("credentials"), read_word, KEY_OPTIONAL},
	{WORD("endpoint"), read_word, KEY_OPTIONAL},
	{WORD("ca_file"), read_path, KEY_OPTIONAL},
	{WORD("identity_client"), read_word, KEY_OPTIONAL},
	{WORD("registry_username"), read_word, KEY_OPTIONAL},
	{WORD("registry_password_file"), read_path, KEY_OPTIONAL},
	{WORD("resolver"), read_word, KEY_OPTIONAL},
	{WORD("vault_secrets"), read_word, KEY_OPTIONAL},
	{WORD("topology"), read_word, KEY_OPTIONAL},
	{WORD("gateway"), read_word, KEY_OPTIONAL},
	{WORD("gateway_dns"), read_word, KEY_OPTIONAL},
	{WORD("intake"), read_word, KEY_OPTIONAL},
	{WORD("intake_ca"), read_path, KEY_OPTIONAL},
	{WORD("map_dir"), read_word, KEY_OPTIONAL},
	{WORD("prices"), config_aci_prices, KEY_OPTIONAL},
};

/* ---- the judgement ---- */

struct judged {
	struct loader *l;
	const struct node *section;
	size_t n_before; /* errors that were told when values were read */
};

#define KEY_ROOM 64

/* The key of an option: "gateway_dns", and of one that is repeated in a list "regions". */
static struct slice key_of(const char *option, char out[KEY_ROOM])
{
	snprintf(out, KEY_ROOM, "%s%s", option, strcmp(option, "region") == 0 ? "s" : "");
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return slice_str(out);
}

/* The value itself, or one of a list of them; NULL: there is none. */
static const struct node *node_of(const struct judged *j, const char *option, size_t i)
{
	char key[KEY_ROOM];
	const struct node *node = node_get(j->section, key_of(option, key));
	if (!node || node->kind != NODE_LIST)
		return i == 0 ? node : NULL;
	const struct node *item = node->first;
	for (; item && i > 0; i--)
		item = item->next;
	return item;
}

/* What is no text has no value, but is there. */
static struct slice value_of(const void *from, const char *option, size_t i)
{
	const struct node *node = node_of(from, option, i);
	if (!node)
		return SLICE_NONE;
	return node->kind == NODE_TEXT ? node->text : SLICE("");
}

/* It is no text, or could be taken for an option: what else is wrong with it is of no use. */
static bool was_told(const struct judged *j, const struct node *node)
{
	const struct policy_errors *errs = j->l->errs;
	for (size_t i = 0; i < j->n_before; i++)
		if (errs->list[i].line == node->at.line && errs->list[i].column == node->at.column)
			return true;
	return false;
}

static void tell(void *from, const char *option, size_t i, const char *why)
{
	const struct judged *j = from;
	const struct node *node = node_of(j, option, i);
	char key[KEY_ROOM];
	if (node && !was_told(j, node))
		node_error(j->l->errs, node, "%s", why);
	else if (!node)
		node_error(j->l->errs, j->section, "missing key %s: %s", quote(key_of(option, key)).text, why);
}

static struct slice variable(const char *name)
{
	const char *value = getenv(name);
	return value ? slice_str(value) : SLICE_NONE;
}

void config_aci(struct loader *l, const struct node *value, void *out)
{
	struct judged judged = {.l = l, .section = value};
	const struct aci_settings all = {.value = value_of,
					 .tell = tell,
					 .from = &judged,
					 .token = variable(INTAKE_TOKEN),
					 .has_password = variable(REGISTRY_PASSWORD).len > 0};
	maker_use(&aci_maker);
	if (!section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out))
		return;
	judged.n_before = l->errs->n;
	aci_settings_check(&all);
}
