/* The command line of cage azure. */
#include <ctype.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "core/base/option_table.h"
#include "orchestrator/client/shown.h"
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
	"  --location REGION      up: where, for example westeurope; needed if it is not there. Not for down\n"
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
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"Ctrl-C ends the watching, not what Azure was asked for. Exit codes: 0 good, 1 failed or something\n"
	"is left, 2 wrong usage or wrong parameters, 130 stopped.\n"
	"\n"
	"  cage azure plan --subscription $ID --group cage --location westeurope\n"
	"  cage azure up --subscription $ID --group cage --location westeurope\n"
	"  cage azure up --subscription $ID --group cage --set deployGateway=true --set-file policy=policy.yaml \\\n"
	"      --set proxyImage=cage/proxy@sha256:... --set dnsImage=cage/dns@sha256:... --set "
	"shipImage=cage/ship@sha256:... \\\n"
	"      --set-file intakeCertificate=intake.pem --set-file intakeKey=intake.key --set-file "
	"intakeToken=intake.token\n"
	"  cage azure down --subscription $ID --group cage\n";

/* ---- the table ---- */

static const char *take_word(void *place, const char *value)
{
	struct words *list = place;
	words_add(list, "%s", value);
	return list->failed ? "no memory" : NULL;
}

#define AT(field) offsetof(struct deploy_options, field)

static const struct option_row rows[] = {
	{"subscription", OPTION_TEXT, AT(azure.subscription), NULL},
	{"group", OPTION_TEXT, AT(azure.group), NULL},
	{"location", OPTION_TEXT, AT(location), NULL},
	{"credentials", OPTION_TAKEN, AT(azure.credentials), azure_take_credentials},
	{"name", OPTION_TEXT, AT(name), NULL},
	{"json", OPTION_FLAG, AT(json), NULL},
	{"set", OPTION_TAKEN, AT(set), take_word},
	{"set-file", OPTION_TAKEN, AT(set_file), take_word},
	{"set-env", OPTION_TAKEN, AT(set_env), take_word},
	{"parameters", OPTION_TEXT, AT(parameters), NULL},
	{"template", OPTION_TEXT, AT(template), NULL},
	{"no-wait", OPTION_FLAG, AT(no_wait), NULL},
	{"yes", OPTION_FLAG, AT(yes), NULL},
	{"only-ours", OPTION_FLAG, AT(only_ours), NULL},
	{"endpoint", OPTION_TEXT, AT(azure.endpoint), NULL},
	{"ca-file", OPTION_TEXT, AT(azure.ca_file), NULL},
};

static const struct option_table table = {.program = "cage",
					  .help = help_text,
					  .more = "cage azure --help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0])};

/* ---- do they go together? ---- */

static int wrong(const char *option, const char *why)
{
	return option_table_wrong(&table, option, why);
}

/* With what it got; nothing that may have a password in it. */
static int wrong_value(const char *option, const char *value, const char *expected)
{
	char safe[LIMIT_CLIENT_CELL], why[2 * LIMIT_CLIENT_CELL];
	if (!value || strchr(value, '@'))
		return wrong(option, expected);
	snprintf(why, sizeof(why), "%s, and got \"%s\"", expected, shown(value, safe, sizeof(safe)));
	return wrong(option, why);
}

static bool is_plain(const char *text, size_t most)
{
	return azure_name_is_plain(text) && strlen(text) <= most;
}

/* 8-4-4-4-12 hex digits. */
static bool is_guid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i = 0;
	if (!text || strlen(text) != sizeof(form) - 1)
		return false;
	while (i < sizeof(form) - 1 && (form[i] == '-' ? text[i] == '-' : isxdigit((unsigned char)text[i])))
		i++;
	return i == sizeof(form) - 1;
}

static int check_values(const struct deploy_options *o)
{
	const struct azure_options *a = &o->azure;
	if (!is_guid(a->subscription))
		return wrong_value("--subscription", a->subscription,
				   "expected the id of a subscription, as 11111111-2222-3333-4444-555555555555");
	if (!is_plain(a->group, 90))
		return wrong_value("--group", a->group, "expected the name of a resource group");
	if (!is_plain(o->name, 64))
		return wrong_value("--name", o->name,
				   "expected letters, digits, '-', '_', '.' and parentheses, 64 at most");
	if (o->location && !is_plain(o->location, 64))
		return wrong_value("--location", o->location, "expected a name such as westeurope");
	return web_url_is_safe(a->endpoint) ? OPTIONS_GO_ON
					    : wrong_value("--endpoint", a->endpoint, "expected https://HOST");
}

static int check(const struct deploy_options *o)
{
	const bool is_down = o->verb == DEPLOY_DOWN;
	const int code = check_values(o);
	if (code != OPTIONS_GO_ON)
		return code;
	if (is_down && (o->set.n || o->set_file.n || o->set_env.n || o->parameters || o->template || o->json))
		return wrong("down", "takes no parameters, no template and no --json");
	if (is_down && o->location)
		return wrong("--location", "is not for down: the resource group is where it is");
	if (!is_down && (o->yes || o->only_ours))
		return wrong("--yes, --only-ours", "are of down alone");
	return o->no_wait && o->verb != DEPLOY_UP ? wrong("--no-wait", "is of up alone") : OPTIONS_GO_ON;
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

int deploy_options_parse(int argc, char **argv, struct deploy_options *out)
{
	*out = (struct deploy_options){.azure = {.endpoint = AZURE_ENDPOINT}, .name = "cage"};
	const int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind >= argc)
		return wrong("a command is missing", "expected up, plan or down");
	if (!read_verb(argv[optind], &out->verb))
		return wrong(argv[optind], "expected up, plan or down");
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
