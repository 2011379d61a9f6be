/* The command line of cage-aci: what is said of Azure, then a word, then what that word takes. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/option_table.h"
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
	"  --resolver ADDR[:PORT] whom proxy and dns ask for names, where the policy names nobody\n"
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
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n";

/* ---- what is more than a text ---- */

static const char *take_word(void *place, const char *value)
{
	words_add(place, "%s", value);
	return NULL;
}

static const char *take_identity(void *place, const char *value)
{
	struct aci_options *o = place;
	if (!o->identity)
		o->identity = value;
	return take_word(&o->identities, value);
}

static const char *take_price(struct aci_options *o, const char *value, uint64_t *out)
{
	o->prices.is_set = true;
	return price_parse(slice_str(value), out) ? NULL : price_expected(slice_str(value));
}

static const char *take_vcpu_price(void *place, const char *value)
{
	struct aci_options *o = place;
	return take_price(o, value, &o->prices.vcpu);
}

static const char *take_gb_price(void *place, const char *value)
{
	struct aci_options *o = place;
	return take_price(o, value, &o->prices.gb);
}

/* ---- the table ---- */

#define AT(field) offsetof(struct aci_options, field)

static const struct option_row rows[] = {
	{"subscription", OPTION_TEXT, AT(azure.subscription), NULL},
	{"group", OPTION_TEXT, AT(azure.group), NULL},
	{"region", OPTION_TAKEN, AT(regions), take_word},
	{"topology", OPTION_TEXT, AT(topology), NULL},
	{"gateway", OPTION_TEXT, AT(gateway), NULL},
	{"gateway-dns", OPTION_TEXT, AT(gateway_dns), NULL},
	{"intake", OPTION_TEXT, AT(intake), NULL},
	{"intake-ca", OPTION_TEXT, AT(intake_ca), NULL},
	{"image", OPTION_TEXT, AT(image), NULL},
	{"proxy-image", OPTION_TEXT, AT(proxy_image), NULL},
	{"dns-image", OPTION_TEXT, AT(dns_image), NULL},
	{"gate-image", OPTION_TEXT, AT(gate_image), NULL},
	{"admit", OPTION_TEXT, AT(admit), NULL},
	{"signatures", OPTION_TEXT, AT(signatures), NULL},
	{"subnet", OPTION_TEXT, AT(subnet), NULL},
	{"identity", OPTION_TAKEN, 0, take_identity},
	{"identity-client", OPTION_TEXT, AT(identity_client), NULL},
	{"vault-secrets", OPTION_TEXT, AT(vault_secrets), NULL},
	{"registry", OPTION_TEXT, AT(registry), NULL},
	{"registry-username", OPTION_TEXT, AT(registry_username), NULL},
	{"registry-password-file", OPTION_TEXT, AT(registry_password_file), NULL},
	{"resolver", OPTION_TEXT, AT(resolver), NULL},
	{"sku", OPTION_TEXT, AT(sku), NULL},
	{"credentials", OPTION_TAKEN, AT(azure.credentials), azure_take_credentials},
	{"endpoint", OPTION_TEXT, AT(azure.endpoint), NULL},
	{"ca-file", OPTION_TEXT, AT(azure.ca_file), NULL},
	{"state", OPTION_TEXT, AT(state), NULL},
	{"pools", OPTION_FLAG, AT(wants_pools), NULL},
	{"vcpu-second", OPTION_TAKEN, 0, take_vcpu_price},
	{"gb-second", OPTION_TAKEN, 0, take_gb_price},
	{"currency", OPTION_TEXT, AT(currency), NULL},
	{"standby", OPTION_TAKEN, AT(standby), take_word},
	{"map-dir", OPTION_TEXT, AT(map_dir), NULL},
};

static const struct option_table table = {.program = "cage-aci",
					  .help = help_text,
					  .more = "--help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0]),
					  .ends_at_word = true};

static int wrong(const char *option, const char *why)
{
	return option_table_wrong(&table, option, why);
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
	for (size_t k = 0; k < table.n_rows; k++)
		if (rows[k].kind == OPTION_TEXT && strcmp(rows[k].name, name) == 0)
			return option_text(&rows[k], o);
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

/* is_made: by what was asked for. Else it was made before, and is looked for. */
static int check(struct aci_options *o, bool is_made)
{
	const char *password = getenv(REGISTRY_PASSWORD);
	const struct aci_settings all = {.value = value_of,
					 .tell = tell,
					 .from = o,
					 .token = o->intake_token ? slice_str(o->intake_token) : SLICE_NONE,
					 .has_password = password && password[0]};
	const bool ok = is_made ? aci_settings_check(&all) : aci_settings_check_few(&all);
	return ok ? OPTIONS_GO_ON : USAGE_WRONG;
}

/* The word behind the options, and what it takes. */
static int parse_what(int argc, char **argv, struct aci_options *out, const char *what)
{
	const int from = optind;
	const bool is_run = strcmp(what, "run") == 0, has_wishes = strcmp(what, "pools") == 0 && from + 1 < argc;
	const bool is_made = is_run || has_wishes || strcmp(what, "bench") == 0;
	const int code = check(out, is_made);
	if (code != OPTIONS_GO_ON || !is_run)
		return code;
	optind = 1;
	return run_options_code(run_options_parse(argc - from, argv + from, &out->run));
}

int aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what)
{
	*out = (struct aci_options){.azure = {.endpoint = AZURE_ENDPOINT},
				    .topology = "group",
				    .vault_secrets = "proxy",
				    .sku = "Standard",
				    .state = "none",
				    .currency = "USD",
				    .resolver = ACI_RESOLVER,
				    .map_dir = ACI_MAPS,
				    .intake_token = secret_variable_take(INTAKE_TOKEN, LIMIT_GATEWAY_TOKEN - 1)};
	const int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind >= argc)
		return wrong("cage-aci", "expected run, remove, list, check, bench, pools or pool-show");
	*what = argv[optind];
	return parse_what(argc, argv, out, *what);
}

void aci_options_free(struct aci_options *o)
{
	words_free(&o->regions);
	words_free(&o->identities);
	words_free(&o->standby);
	wipe_free(o->intake_token);
	run_options_free(&o->run);
}
