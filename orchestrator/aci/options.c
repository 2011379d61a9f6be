/* The command line of cage-aci: what is said of Azure, then a word, then what that word takes. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/aci/aci.h"

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
	"                         alone, with the proxy of --gateway\n"
	"  --gateway HOST:PORT    of split\n"
	"  --image, --proxy-image, --dns-image, --gate-image NAME\n"
	"                         run needs them; split needs the first and the last\n"
	"  --admit IMAGE          of the agent, in the place of --image: REGISTRY/REPOSITORY@sha256:HEX,\n"
	"                         which the policy has to let in\n"
	"  --signatures DIR       of such images\n"
	"  --subnet ID            resource id of a delegated subnet\n"
	"  --identity ID          resource id of the identity of the group: it pulls from --registry, and\n"
	"                         the proxy asks the Key Vault by it; not with split\n"
	"  --registry SERVER      from which images are pulled by that identity\n"
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
	{"vcpu-second", required_argument, NULL, 20},
	{"gb-second", required_argument, NULL, 21},
	{"currency", required_argument, NULL, 22},
	{"standby", required_argument, NULL, 23},
	{"map-dir", required_argument, NULL, 24},
	{"pools", no_argument, NULL, 25},
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

static enum options_action take_price(struct aci_options *o, int opt, const char *value)
{
	o->prices.is_set = true;
	return price_parse(slice_str(value), opt == 20 ? &o->prices.vcpu : &o->prices.gb)
		       ? OPTIONS_RUN
		       : wrong(opt == 20 ? "--vcpu-second" : "--gb-second", "expected a price such as 0.0000135");
}

static enum options_action take_word(struct aci_options *o, int opt, const char *value)
{
	if (opt == 20 || opt == 21)
		return take_price(o, opt, value);
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

static enum options_action take_pool(struct aci_options *o, int opt, const char *value)
{
	if (opt == 25)
		o->wants_pools = true;
	else
		words_add(&o->standby, "%s", value);
	return OPTIONS_RUN;
}

static enum options_action take(struct aci_options *o, int opt, const char *value)
{
	const char **const rows[] = {
		[1] = &o->azure.subscription, [2] = &o->azure.group, [5] = &o->gateway,    [6] = &o->image,
		[7] = &o->proxy_image,        [8] = &o->dns_image,   [9] = &o->gate_image, [10] = &o->subnet,
		[11] = &o->identity,          [12] = &o->registry,   [13] = &o->sku,       [15] = &o->azure.endpoint,
		[16] = &o->azure.ca_file,     [17] = &o->state,      [18] = &o->admit,     [19] = &o->signatures,
		[22] = &o->currency,          [24] = &o->map_dir};
	if (opt == 'h') {
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
	if (opt == 3 || opt == 4 || opt == 14 || opt == 20 || opt == 21)
		return take_word(o, opt, value);
	if (opt == 23 || opt == 25)
		return take_pool(o, opt, value);
	*rows[opt] = value;
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
	if (o->map_dir[0] != '/')
		return wrong("--map-dir", "expected an absolute path");
	return OPTIONS_RUN;
}

static enum options_action check_run(const struct aci_options *o)
{
	const bool is_split = o->topology == TOPOLOGY_SPLIT;
	if (o->regions.n == 0)
		return wrong("--region", "at least one is needed");
	if (!o->image || !o->gate_image || (!is_split && (!o->proxy_image || !o->dns_image)))
		return wrong("--image", "images of the agent, the gate and, without split, proxy and dns are needed");
	if (is_split != (o->gateway != NULL))
		return wrong("--gateway", "needed for split, and for nothing else");
	if (is_split && o->identity)
		return wrong("--identity", "the group of an agent alone has none: the agent could ask for its tokens");
	return OPTIONS_RUN;
}

enum options_action aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct aci_options){.azure = {.endpoint = AZURE_ENDPOINT},
				    .sku = "Standard",
				    .state = "none",
				    .currency = "USD",
				    .map_dir = ACI_MAPS};
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
	words_free(&o->standby);
	run_options_free(&o->run);
}
