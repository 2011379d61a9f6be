/* The command line of cage-aci: what is said of Azure, then a word, then what that word takes. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/base/wipe.h"
#include "orchestrator/aci/aci.h"
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
	"                         run needs them; split needs the first and the last\n"
	"  --admit IMAGE          of the agent, in the place of --image: REGISTRY/REPOSITORY@sha256:HEX,\n"
	"                         which the policy has to let in\n"
	"  --signatures DIR       of such images\n"
	"  --subnet ID            resource id of a delegated subnet\n"
	"  --identity ID          resource id of the identity of the group: it pulls from --registry, and\n"
	"                         the proxy asks the Key Vault by it; with split it pulls alone\n"
	"                         repeated: the first one pulls, and the last one is the proxy's\n"
	"  --identity-client ID   client id of the one by which the proxy asks the Key Vault\n"
	"  --vault-secrets WORD   proxy (default): it asks for them itself; reference: Azure puts them\n"
	"                         into its environment when the group is made\n"
	"  --registry SERVER      from which images are pulled by that identity, or by\n"
	"  --registry-username NAME\n"
	"                         whose password is in CAGE_REGISTRY_PASSWORD, or in\n"
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
	return price_parse(slice_str(value), out) ? OPTIONS_RUN : wrong(option, "expected a price such as 0.0000135");
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

/* ---- do they go together? ---- */

/* What a gateway is reached by; a word of it without that topology is a mistake. */
static enum options_action check_split(const struct aci_options *o)
{
	if (!aci_is_split(o))
		return o->gateway || o->gateway_dns || o->intake || o->intake_ca
			       ? wrong("--gateway", "it and the intake are for the topology split alone")
			       : OPTIONS_RUN;
	if (!o->intake || !web_url_is_safe(o->intake))
		return wrong("--intake", "split needs it: expected https://HOST:PORT");
	if (!o->intake_token)
		return wrong(INTAKE_TOKEN, "split needs this variable");
	return OPTIONS_RUN;
}

static enum options_action check(const struct aci_options *o)
{
	if (!azure_name_is_plain(o->azure.subscription))
		return wrong("--subscription", "expected the id of a subscription");
	if (!azure_name_is_plain(o->azure.group))
		return wrong("--group", "expected the name of a resource group");
	if (!web_url_is_safe(o->azure.endpoint))
		return wrong("--endpoint", "expected https://HOST");
	if (strcmp(o->sku, "Standard") != 0 && strcmp(o->sku, "Confidential") != 0)
		return wrong("--sku", "expected Standard or Confidential");
	if (o->map_dir[0] != '/')
		return wrong("--map-dir", "expected an absolute path");
	return check_split(o);
}

/* The relay resolves nothing. */
static bool is_place(const char *text)
{
	struct addr at;
	uint16_t port;
	return addr_parse_with_port(slice_str(text), &at, &port) && port > 0;
}

static enum options_action check_identities(const struct aci_options *o)
{
	if (aci_is_split(o) && (o->identities.n > 1 || o->identity_client || o->refers))
		return wrong("--identity", "with split there is one, which pulls; the gateway has the others");
	if (o->identities.n > 1 && !o->identity_client)
		return wrong("--identity-client", "of several identities it has to say which one is the proxy's");
	if (o->identity_client && !o->identity)
		return wrong("--identity-client", "there is no --identity");
	if (o->refers && !o->identity)
		return wrong("--vault-secrets", "there is no --identity that could read them");
	if (o->registry_username && !o->registry)
		return wrong("--registry-username", "there is no --registry");
	return o->registry_password_file && !o->registry_username
		       ? wrong("--registry-password-file", "there is no --registry-username")
		       : OPTIONS_RUN;
}

static enum options_action check_run(const struct aci_options *o)
{
	const bool is_split = aci_is_split(o);
	if (o->regions.n == 0)
		return wrong("--region", "at least one is needed");
	if (!o->image || !o->gate_image || (!is_split && (!o->proxy_image || !o->dns_image)))
		return wrong("--image", "images of the agent, the gate and, without split, proxy and dns are needed");
	if (is_split && (!o->gateway || !is_place(o->gateway)))
		return wrong("--gateway", "split needs it: expected ADDRESS:PORT, and no name");
	if (is_split && o->gateway_dns && !is_place(o->gateway_dns))
		return wrong("--gateway-dns", "expected ADDRESS:PORT, and no name");
	return check_identities(o);
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
	enum options_action next = check(out);
	const bool is_run = strcmp(*what, "run") == 0, has_wishes = strcmp(*what, "pools") == 0 && from + 1 < argc;
	if (next == OPTIONS_RUN && (is_run || has_wishes || strcmp(*what, "bench") == 0))
		next = check_run(out);
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
