/* The command line of cage azure. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/deploy/deploy.h"

static const char help_text[] =
	"usage: cage azure up [options]\n"
	"       cage azure plan [options]\n"
	"       cage azure down [options]\n"
	"\n"
	"What cage needs around sandboxes on Azure: network, gateway, identities, vault, registry and\n"
	"log (infra/azure/README.md), in one resource group.\n"
	"\n"
	"  up                     makes it, or brings it to what template and parameters say; shows each\n"
	"                         resource as it comes, then the outputs. What was cut off goes on when it\n"
	"                         is run again\n"
	"  plan                   says what up would change, and changes nothing\n"
	"  down                   removes all of it, once the name of the group was typed: standby pools,\n"
	"                         sandboxes and other container groups, their profiles, then the rest; looks\n"
	"                         whether anything is left, and ends with 1 if so\n"
	"\n"
	"  --subscription ID      required, as is the next\n"
	"  --group NAME           the resource group; up makes it if it is not there\n"
	"  --location REGION      up: where, for example westeurope; needed if it is not there\n"
	"  --credentials WORD     auto (default), secret, workload, identity or az (docs/azure.md)\n"
	"  --name NAME            up, plan: of the deployment (default cage)\n"
	"  --json                 up, plan: what came of it as one JSON object; the rest goes to stderr\n"
	"\n"
	"Parameters, of up and plan; all are held against the template before anything is sent:\n"
	"\n"
	"  --set NAME=VALUE       repeated. What is no string is written as JSON: true, 5300, [\"80\", \"443\"]\n"
	"  --set-file NAME=FILE   repeated: the text of a file. Secure ones lose one line break at the end\n"
	"  --set-env NAME=VAR     repeated: the text of a variable\n"
	"  --parameters FILE      a file of parameters, as az deployment takes it; the others count more\n"
	"  --template FILE        (default: $CAGE_INFRA/azure/main.json, or the one that came with cage)\n"
	"\n"
	"A secure parameter has its value from a file or a variable, never from --set: command lines can\n"
	"be read by everybody. It is shown nowhere, whatever Azure answers.\n"
	"\n"
	"  --no-wait              up: ends once Azure has taken the deployment\n"
	"  --yes                  down: without asking\n"
	"  --only-ours            down: in a group that up has not made, what deployments of up made in it, and\n"
	"                         sandboxes with their standby pools and profiles; nothing else\n"
	"  --endpoint URL         of the management API (default " AZURE_ENDPOINT ")\n"
	"  --ca-file FILE         whom to believe there (default: the certificates of the system)\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"Ctrl-C ends the watching, not what Azure was asked for. Exit codes: 0 good, 1 failed or something\n"
	"is left, 2 wrong usage or wrong parameters, 130 stopped.\n"
	"\n"
	"  cage azure plan --subscription $ID --group cage --location westeurope\n"
	"  cage azure up --subscription $ID --group cage --location westeurope\n"
	"  cage azure up --subscription $ID --group cage --set deployGateway=true --set-file policy=policy.yaml \\\n"
	"      --set proxyImage=cage/proxy@sha256:... --set dnsImage=cage/dns@sha256:...\n"
	"  cage azure down --subscription $ID --group cage\n";

enum {
	SUBSCRIPTION = 1,
	GROUP,
	LOCATION,
	CREDENTIALS,
	NAME,
	JSON,
	SET,
	SET_FILE,
	SET_ENV,
	PARAMETERS,
	TEMPLATE,
	NO_WAIT,
	YES,
	ONLY_OURS,
	ENDPOINT,
	CA_FILE
};

static const struct option long_options[] = {{"subscription", required_argument, NULL, SUBSCRIPTION},
					     {"group", required_argument, NULL, GROUP},
					     {"location", required_argument, NULL, LOCATION},
					     {"credentials", required_argument, NULL, CREDENTIALS},
					     {"name", required_argument, NULL, NAME},
					     {"json", no_argument, NULL, JSON},
					     {"set", required_argument, NULL, SET},
					     {"set-file", required_argument, NULL, SET_FILE},
					     {"set-env", required_argument, NULL, SET_ENV},
					     {"parameters", required_argument, NULL, PARAMETERS},
					     {"template", required_argument, NULL, TEMPLATE},
					     {"no-wait", no_argument, NULL, NO_WAIT},
					     {"yes", no_argument, NULL, YES},
					     {"only-ours", no_argument, NULL, ONLY_OURS},
					     {"endpoint", required_argument, NULL, ENDPOINT},
					     {"ca-file", required_argument, NULL, CA_FILE},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};

static enum options_action wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("cage azure --help says more");
	return OPTIONS_EXIT_USAGE;
}

static bool is_plain(const char *text, size_t most)
{
	return azure_name_is_plain(text) && strlen(text) <= most;
}

static enum options_action take_list(struct words *list, const char *value)
{
	words_add(list, "%s", value);
	return list->failed ? wrong("--set", "no memory") : OPTIONS_RUN;
}

static enum options_action take(struct deploy_options *o, int opt, const char *value)
{
	const char **const texts[] = {[SUBSCRIPTION] = &o->azure.subscription,
				      [GROUP] = &o->azure.group,
				      [LOCATION] = &o->location,
				      [NAME] = &o->name,
				      [PARAMETERS] = &o->parameters,
				      [TEMPLATE] = &o->template,
				      [ENDPOINT] = &o->azure.endpoint,
				      [CA_FILE] = &o->azure.ca_file};
	bool *const flags[] = {
		[JSON] = &o->json, [NO_WAIT] = &o->no_wait, [YES] = &o->yes, [ONLY_OURS] = &o->only_ours};
	if (opt == 'h')
		return fputs(help_text, stdout) < 0 ? OPTIONS_EXIT_USAGE : OPTIONS_EXIT_OK;
	if (opt == CREDENTIALS)
		return azure_credentials_read(value, &o->azure.credentials)
			       ? OPTIONS_RUN
			       : wrong("--credentials", "expected auto, secret, workload, identity or az");
	if (opt == SET || opt == SET_FILE || opt == SET_ENV)
		return take_list(opt == SET ? &o->set : opt == SET_FILE ? &o->set_file : &o->set_env, value);
	if (value)
		*texts[opt] = value;
	else
		*flags[opt] = true;
	return OPTIONS_RUN;
}

static enum options_action check(const struct deploy_options *o)
{
	const bool is_down = o->verb == DEPLOY_DOWN;
	if (!is_plain(o->azure.subscription, 64))
		return wrong("--subscription", "expected the id of a subscription");
	if (!is_plain(o->azure.group, 90))
		return wrong("--group", "expected the name of a resource group");
	if (!is_plain(o->name, 64))
		return wrong("--name", "expected letters, digits, '-', '_', '.' and parentheses, 64 at most");
	if (o->location && !is_plain(o->location, 64))
		return wrong("--location", "expected a name such as westeurope");
	if (!web_url_is_safe(o->azure.endpoint))
		return wrong("--endpoint", "expected https://HOST");
	if (is_down && (o->set.n || o->set_file.n || o->set_env.n || o->parameters || o->template || o->json))
		return wrong("down", "takes no parameters, no template and no --json");
	if (!is_down && (o->yes || o->only_ours))
		return wrong("--yes, --only-ours", "are of down alone");
	return o->no_wait && o->verb != DEPLOY_UP ? wrong("--no-wait", "is of up alone") : OPTIONS_RUN;
}

static bool read_verb(const char *word, enum deploy_verb *out)
{
	static const char *const verbs[] = {[DEPLOY_UP] = "up", [DEPLOY_PLAN] = "plan", [DEPLOY_DOWN] = "down"};
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(word, verbs[i]) == 0) {
			*out = (enum deploy_verb)i;
			return true;
		}
	return false;
}

enum options_action deploy_options_parse(int argc, char **argv, struct deploy_options *out)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct deploy_options){.azure = {.endpoint = AZURE_ENDPOINT}, .name = "cage"};
	while ((opt = usage_next(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind >= argc || !read_verb(argv[optind], &out->verb))
		return wrong(optind < argc ? argv[optind] : "azure", "expected up, plan or down");
	if (optind + 1 < argc)
		return wrong(argv[optind + 1], "is not expected here");
	return check(out);
}

void deploy_options_free(struct deploy_options *o)
{
	words_wipe(&o->set);
	words_free(&o->set_file);
	words_free(&o->set_env);
}
