/* The command line of cage-aci: what is said of Azure, then a word, then what that word takes. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/aci/aci.h"

static const char help_text[] =
	"usage: cage-aci [options] run [options of cage run] -- CMD [ARGS]\n"
	"       cage-aci [options] remove ID\n"
	"       cage-aci [options] list\n"
	"       cage-aci [options] check\n"
	"\n"
	"A sandbox as a group of Azure Container Instances, for cage-keeper. It is not for people.\n"
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
	"  --registry SERVER      from which images are pulled by that identity\n"
	"  --sku WORD             Standard (default) or Confidential\n"
	"  --credentials WORD     auto (default), secret, workload, identity or az (docs/azure.md)\n"
	"  --endpoint URL         of the management API (default " AZURE_ENDPOINT ")\n"
	"  --ca-file FILE         whom to believe there (default: the certificates of the system)\n"
	"  --state WORD           tag of all that is made\n"
	"  -h, --help             print this and exit\n";

static const struct option long_options[] = {
	{"subscription", required_argument, NULL, 1},
	{"group", required_argument, NULL, 2},
	{"region", required_argument, NULL, 3},
	{"topology", required_argument, NULL, 4},
	{"gateway", required_argument, NULL, 5},
	{"image", required_argument, NULL, 6},
	{"proxy-image", required_argument, NULL, 7},
	{"dns-image", required_argument, NULL, 8},
	{"gate-image", required_argument, NULL, 9},
	{"subnet", required_argument, NULL, 10},
	{"identity", required_argument, NULL, 11},
	{"registry", required_argument, NULL, 12},
	{"sku", required_argument, NULL, 13},
	{"credentials", required_argument, NULL, 14},
	{"endpoint", required_argument, NULL, 15},
	{"ca-file", required_argument, NULL, 16},
	{"state", required_argument, NULL, 17},
	{"admit", required_argument, NULL, 18},
	{"signatures", required_argument, NULL, 19},
	{"gateway-dns", required_argument, NULL, 20},
	{"intake", required_argument, NULL, 21},
	{"intake-ca", required_argument, NULL, 22},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	return OPTIONS_EXIT_USAGE;
}

/* What becomes a part of an address has letters that mean nothing there. */
static bool is_plain(const char *text)
{
	return text[0] &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.()") == strlen(text) &&
	       strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static enum options_action take_word(struct aci_options *o, int opt, const char *value)
{
	if (opt == 3) {
		words_add(&o->regions, "%s", value);
		return is_plain(value) ? OPTIONS_RUN : wrong("--region", "expected a name such as westeurope");
	}
	if (opt == 4) {
		o->topology = strcmp(value, "split") == 0 ? TOPOLOGY_SPLIT : TOPOLOGY_GROUP;
		return o->topology == TOPOLOGY_SPLIT || strcmp(value, "group") == 0
			       ? OPTIONS_RUN
			       : wrong("--topology", "expected group or split");
	}
	return azure_credentials_read(value, &o->azure.credentials)
		       ? OPTIONS_RUN
		       : wrong("--credentials", "expected auto, secret, workload, identity or az");
}

static enum options_action take(struct aci_options *o, int opt, const char *value)
{
	const char **const rows[] = {
		[1] = &o->azure.subscription, [2] = &o->azure.group, [5] = &o->gateway,    [6] = &o->image,
		[7] = &o->proxy_image,        [8] = &o->dns_image,   [9] = &o->gate_image, [10] = &o->subnet,
		[11] = &o->identity,          [12] = &o->registry,   [13] = &o->sku,       [15] = &o->azure.endpoint,
		[16] = &o->azure.ca_file,     [17] = &o->state,      [18] = &o->admit,     [19] = &o->signatures,
		[20] = &o->gateway_dns,       [21] = &o->intake,     [22] = &o->intake_ca};
	if (opt == 'h') {
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
	if (opt == 3 || opt == 4 || opt == 14)
		return take_word(o, opt, value);
	*rows[opt] = value;
	return OPTIONS_RUN;
}

/* What a gateway is reached by; a word of it without that topology is a mistake. */
static enum options_action check_split(const struct aci_options *o)
{
	const char *token = getenv(INTAKE_TOKEN);
	if (!aci_is_split(o))
		return o->gateway || o->gateway_dns || o->intake || o->intake_ca
			       ? wrong("--gateway", "it and the intake are for the topology split alone")
			       : OPTIONS_RUN;
	if (!o->intake || !web_url_is_safe(o->intake))
		return wrong("--intake", "split needs it: expected https://HOST:PORT");
	if (!token || !token[0] || strlen(token) >= LIMIT_GATEWAY_TOKEN)
		return wrong(INTAKE_TOKEN, "split needs this variable");
	return OPTIONS_RUN;
}

static enum options_action check(const struct aci_options *o)
{
	if (!o->azure.subscription || !is_plain(o->azure.subscription))
		return wrong("--subscription", "expected the id of a subscription");
	if (!o->azure.group || !is_plain(o->azure.group))
		return wrong("--group", "expected the name of a resource group");
	if (!web_url_is_safe(o->azure.endpoint))
		return wrong("--endpoint", "expected https://HOST");
	if (strcmp(o->sku, "Standard") != 0 && strcmp(o->sku, "Confidential") != 0)
		return wrong("--sku", "expected Standard or Confidential");
	return check_split(o);
}

/* The relay resolves nothing. */
static bool is_place(const char *text)
{
	struct addr at;
	uint16_t port;
	return addr_parse_with_port(slice_str(text), &at, &port) && port > 0;
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
	return OPTIONS_RUN;
}

enum options_action aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct aci_options){.azure = {.endpoint = AZURE_ENDPOINT}, .sku = "Standard", .state = "none"};
	while ((opt = usage_next(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind >= argc)
		return wrong("cage-aci", "expected run, remove, list or check");
	*what = argv[optind];
	int from = optind;
	enum options_action next = check(out);
	if (next != OPTIONS_RUN || strcmp(*what, "run") != 0)
		return next;
	next = check_run(out);
	optind = 1;
	return next == OPTIONS_RUN ? run_options_parse(argc - from, argv + from, &out->run) : next;
}

void aci_options_free(struct aci_options *o)
{
	words_free(&o->regions);
	run_options_free(&o->run);
}
