/* The command line of cage-aci: what is said of Azure, then a word, then what that word takes. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/base/wipe.h"
#include "orchestrator/aci/aci.h"
#include "orchestrator/aci/settings.h"
#include "orchestrator/secret_variable.h"

static const char help_text[] =
	"usage: cage-aci [options] run [options of cage run] -- CMD [ARGS]\n"
	"       cage-aci [options] remove ID\n"
	"       cage-aci [options] list\n"
	"       cage-aci [options] check\n"
	"       cage-aci [options] bench [options]\n"
	"       cage-aci [options] pools [N:LIMITS]...\n"
	"       cage-aci [options] pool-show\n"
	"\n"
	"A sandbox as a group of Azure Container Instances, for cage-keeper. It is not for people, but\n"
	"for bench (bench --help), which measures how fast groups come.\n"
	"pools makes standby pools of N groups for runs with these limits (mem=2G,cpu=1), in the first\n"
	"region, removes all others of this --state, and prints their names; pool-show tells of them.\n"
	"\n"
	"  --subscription ID      required, as is the next\n"
	"  --group NAME           the resource group\n"
	"  --region NAME          repeated: tried in this order; run needs one\n"
	"  --topology WORD        group (default): agent, proxy and dns in one group; split: the agent\n"
	"                         and a relay to the proxy of a gateway (cage-gateway)\n"
	"  --gateway ADDR:PORT    of split: its proxy\n"
	"  --gateway-dns ADDR:PORT  of split: its dns, over TCP\n"
	"  --intake URL           of split: where sandboxes are told to the gateway, https://HOST:PORT;\n"
	"                         the variable " INTAKE_TOKEN " has its token\n"
	"  --intake-ca FILE       of split: whom to believe there (default: the certificates of the system)\n"
	"  --image, --proxy-image, --dns-image, --gate-image NAME\n"
	"                         by their digests; run needs them; split has the first and the last alone\n"
	"  --admit IMAGE          of the agent, in the place of --image: REGISTRY/REPOSITORY@sha256:HEX,\n"
	"                         which the policy has to let in\n"
	"  --signatures DIR       of such images\n"
	"  --subnet ID            resource id of a delegated subnet; split needs it\n"
	"  --identity ID          resource id of the identity of the group: it pulls from --registry, and\n"
	"                         the proxy asks the Key Vault by it; with split it pulls alone\n"
	"                         repeated: the first one pulls, and the last one is the proxy's\n"
	"  --identity-client ID   client id of the one by which the proxy asks the Key Vault\n"
	"  --vault-secrets WORD   proxy (default): it asks for them itself; reference: Azure puts them\n"
	"                         into its environment when the group is made\n"
	"  --registry SERVER      from which images are pulled by that identity, or by\n"
	"  --registry-username NAME\n"
	"                         whose password is in " REGISTRY_PASSWORD ", or in\n"
	"  --registry-password-file FILE\n"
	"  --resolver ADDRESS     whom proxy and dns ask for names, where the policy names nobody\n"
	"                         (default " ACI_RESOLVER ", Azure's own)\n"
	"  --sku WORD             Standard (default) or Confidential\n"
	"  --credentials WORD     auto (default), secret, workload, identity or az (docs/azure.md)\n"
	"  --endpoint URL         of the management API (default " AZURE_ENDPOINT ")\n"
	"  --ca-file FILE         whom to believe there (default: the certificates of the system)\n"
	"  --state WORD           tag of all that is made\n"
	"  --standby NAME         repeated: a pool that there is; run takes a group of it if that is just\n"
	"                         what it needs, and no value of a secret would have to be shown\n"
	"  --map-dir DIR          where a container finds its config map (default " ACI_MAPS ")\n"
	"  --pools                check: pools have to be to be had as well\n"
	"  --vcpu-second, --gb-second PRICE, --currency WORD\n"
	"                         what is paid, such as 0.0000135; for bench\n"
	"  -h, --help             print this and exit\n";

static enum options_action wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	return OPTIONS_EXIT_USAGE;
}

/* ---- what is more than a text ---- */

static enum options_action take_region(struct aci_options *o, const char *value)
{
	words_add(&o->regions, "%s", value);
	return azure_name_is_plain(value) ? OPTIONS_RUN : wrong("--region", "expected a name such as westeurope");
}

static enum options_action take_topology(struct aci_options *o, const char *value)
{
	o->topology = strcmp(value, "split") == 0 ? TOPOLOGY_SPLIT : TOPOLOGY_GROUP;
	return o->topology == TOPOLOGY_SPLIT || strcmp(value, "group") == 0
		       ? OPTIONS_RUN
		       : wrong("--topology", "expected group or split");
}

static enum options_action take_identity(struct aci_options *o, const char *value)
{
	words_add(&o->identities, "%s", value);
	if (!o->identity)
		o->identity = value;
	return OPTIONS_RUN;
}

static enum options_action take_vault_secrets(struct aci_options *o, const char *value)
{
	o->refers = strcmp(value, "reference") == 0;
	return o->refers || strcmp(value, "proxy") == 0 ? OPTIONS_RUN
							: wrong("--vault-secrets", "expected proxy or reference");
}

static enum options_action take_credentials(struct aci_options *o, const char *value)
{
	return azure_credentials_read(value, &o->azure.credentials)
		       ? OPTIONS_RUN
		       : wrong("--credentials", "expected auto, secret, workload, identity or az");
}

static enum options_action take_price(struct aci_options *o, const char *option, const char *value, uint64_t *out)
{
	o->prices.is_set = true;
	return price_parse(slice_str(value), out) ? OPTIONS_RUN : wrong(option, price_expected(slice_str(value)));
}

static enum options_action take_vcpu_price(struct aci_options *o, const char *value)
{
	return take_price(o, "--vcpu-second", value, &o->prices.vcpu);
}

static enum options_action take_gb_price(struct aci_options *o, const char *value)
{
	return take_price(o, "--gb-second", value, &o->prices.gb);
}

static enum options_action take_standby(struct aci_options *o, const char *value)
{
	words_add(&o->standby, "%s", value);
	return OPTIONS_RUN;
}

/* ---- the table ---- */

/* An option is a text of struct aci_options, or has a function. */
static const struct row {
	const char *name;
	size_t at;
	enum options_action (*take)(struct aci_options *o, const char *value);
} rows[] = {
	{"subscription", offsetof(struct aci_options, azure.subscription), NULL},
	{"group", offsetof(struct aci_options, azure.group), NULL},
	{"region", 0, take_region},
	{"topology", 0, take_topology},
	{"gateway", offsetof(struct aci_options, gateway), NULL},
	{"gateway-dns", offsetof(struct aci_options, gateway_dns), NULL},
	{"intake", offsetof(struct aci_options, intake), NULL},
	{"intake-ca", offsetof(struct aci_options, intake_ca), NULL},
	{"image", offsetof(struct aci_options, image), NULL},
	{"proxy-image", offsetof(struct aci_options, proxy_image), NULL},
	{"dns-image", offsetof(struct aci_options, dns_image), NULL},
	{"gate-image", offsetof(struct aci_options, gate_image), NULL},
	{"admit", offsetof(struct aci_options, admit), NULL},
	{"signatures", offsetof(struct aci_options, signatures), NULL},
	{"subnet", offsetof(struct aci_options, subnet), NULL},
	{"identity", 0, take_identity},
	{"identity-client", offsetof(struct aci_options, identity_client), NULL},
	{"vault-secrets", 0, take_vault_secrets},
	{"registry", offsetof(struct aci_options, registry), NULL},
	{"registry-username", offsetof(struct aci_options, registry_username), NULL},
	{"registry-password-file", offsetof(struct aci_options, registry_password_file), NULL},
	{"resolver", offsetof(struct aci_options, resolver), NULL},
	{"sku", offsetof(struct aci_options, sku), NULL},
	{"credentials", 0, take_credentials},
	{"endpoint", offsetof(struct aci_options, azure.endpoint), NULL},
	{"ca-file", offsetof(struct aci_options, azure.ca_file), NULL},
	{"state", offsetof(struct aci_options, state), NULL},
	{"vcpu-second", 0, take_vcpu_price},
	{"gb-second", 0, take_gb_price},
	{"currency", offsetof(struct aci_options, currency), NULL},
	{"standby", 0, take_standby},
	{"map-dir", offsetof(struct aci_options, map_dir), NULL},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define FIRST 256 /* above all letters: what getopt says of the first row */

/* As getopt wants to have it: the rows, and what takes no value. */
static const struct option *long_options(void)
{
	static struct option list[ROWS + 3];
	for (size_t i = 0; i < ROWS; i++)
		list[i] = (struct option){rows[i].name, required_argument, NULL, FIRST + (int)i};
	list[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
	list[ROWS + 1] = (struct option){"pools", no_argument, NULL, 'p'};
	return list;
}

static enum options_action take(struct aci_options *o, int opt, const char *value)
{
	if (opt == 'h') {
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
	if (opt == 'p') {
		o->wants_pools = true;
		return OPTIONS_RUN;
	}
	const struct row *row = &rows[opt - FIRST];
	if (row->take)
		return row->take(o, value);
	*(const char **)((char *)o + row->at) = value;
	return OPTIONS_RUN;
}

/* ---- are they good, and do they go together? ---- */

/* Number i of what is repeated. */
static const char *word_of(const struct words *w, size_t i)
{
	return i < w->n ? w->list[i] : NULL;
}

static const char *text_of(const struct aci_options *o, const char *name, size_t i)
{
	if (strcmp(name, "region") == 0)
		return word_of(&o->regions, i);
	if (strcmp(name, "identity") == 0)
		return word_of(&o->identities, i);
	if (i > 0)
		return NULL;
	if (strcmp(name, "topology") == 0)
		return aci_is_split(o) ? "split" : "group";
	if (strcmp(name, "vault-secrets") == 0)
		return o->refers ? "reference" : "proxy";
	for (size_t k = 0; k < ROWS; k++)
		if (!rows[k].take && strcmp(rows[k].name, name) == 0)
			return *(const char *const *)((const char *)o + rows[k].at);
	return NULL;
}

static struct slice value_of(const void *from, const char *name, size_t i)
{
	const char *text = text_of(from, name, i);
	return text ? slice_str(text) : SLICE_NONE;
}

static void tell(void *from, const char *name, size_t i, const char *why)
{
	(void)from, (void)i;
	say("--%s: %s", name, why);
}

/* Of one that is made. */
static enum options_action check_all(struct aci_options *o)
{
	const char *password = getenv(REGISTRY_PASSWORD);
	const struct aci_settings all = {.value = value_of,
					 .tell = tell,
					 .from = o,
					 .token = o->intake_token ? slice_str(o->intake_token) : SLICE_NONE,
					 .has_password = password && password[0]};
	return aci_settings_check(&all) ? OPTIONS_RUN : OPTIONS_EXIT_USAGE;
}

/* What was made by other settings, or an earlier cage, has to be found and removed all the same: no more than that needs. */
static enum options_action check_some(const struct aci_options *o)
{
	if (!azure_name_is_plain(o->azure.subscription))
		return wrong("--subscription", "expected the id of a subscription");
	if (!azure_name_is_plain(o->azure.group))
		return wrong("--group", "expected the name of a resource group");
	if (!web_url_is_safe(o->azure.endpoint))
		return wrong("--endpoint", "expected https://HOST");
	if (!aci_is_split(o))
		return OPTIONS_RUN;
	if (!o->intake || !web_url_is_safe(o->intake))
		return wrong("--intake", "split needs it: expected https://HOST:PORT");
	return o->intake_token ? OPTIONS_RUN : wrong(INTAKE_TOKEN, "split needs this variable");
}

enum options_action aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what)
{
	char word[USAGE_WORD];
	int opt;
	const struct option *list = long_options();
	*out = (struct aci_options){.azure = {.endpoint = AZURE_ENDPOINT},
				    .sku = "Standard",
				    .state = "none",
				    .currency = "USD",
				    .resolver = ACI_RESOLVER,
				    .map_dir = ACI_MAPS,
				    .intake_token = secret_variable_take(INTAKE_TOKEN, LIMIT_GATEWAY_TOKEN - 1)};
	while ((opt = usage_next(argc, argv, "+:h", list, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, list, word);
			return wrong(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind >= argc)
		return wrong("cage-aci", "expected run, remove, list, check, bench, pools or pool-show");
	*what = argv[optind];
	int from = optind;
	const bool is_run = strcmp(*what, "run") == 0, has_wishes = strcmp(*what, "pools") == 0 && from + 1 < argc;
	const bool is_made = is_run || has_wishes || strcmp(*what, "bench") == 0;
	enum options_action next = is_made ? check_all(out) : check_some(out);
	if (next != OPTIONS_RUN || !is_run)
		return next;
	optind = 1;
	return run_options_parse(argc - from, argv + from, &out->run);
}

void aci_options_free(struct aci_options *o)
{
	words_free(&o->regions);
	words_free(&o->identities);
	words_free(&o->standby);
	wipe_free(o->intake_token);
	run_options_free(&o->run);
}
