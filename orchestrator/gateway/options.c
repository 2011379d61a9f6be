/* The command line of cage-gateway: its own options, then those of cage-proxy. */
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "core/base/option_table.h"
#include "orchestrator/gateway/gateway.h"

static const char help_text[] =
	"usage: cage-gateway [options] -- [further options of cage-proxy]\n"
	"\n"
	"A cage-proxy for many sandboxes, and an API by which an orchestrator says which ones\n"
	"(docs/azure.md). All but those from --ca-dir on are required.\n"
	"\n"
	"  --intake ADDR:PORT     where the orchestrator asks, over TLS\n"
	"  --intake-cert FILE     certificate of that, with those above it\n"
	"  --intake-key FILE      its key\n"
	"  --intake-token FILE    what the orchestrator has to show, 32 characters at least\n"
	"  --state DIR            sandboxes, decision log and admin socket of the proxy; made when absent\n"
	"  --policy FILE          of the proxy: for sandboxes that come with none, and the ceiling of those\n"
	"                         that come with secrets; one that has more when it is changed is shut\n"
	"  --ca-dir DIR           of the proxy\n"
	"  --keys DIR             of the proxy\n"
	"  --log-dir DIR          of the decision log (default log in --state); made when absent\n"
	"  --log-bytes N          of the decision log, before a new file is begun (default 67108864)\n"
	"  --log-files N          files of before that are kept (default 8)\n"
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"--sandbox, --sandboxes, --log, --admin and --reloads of the proxy are set by this program, and\n"
	"--never for the intake, which is one of the four that it takes; tell it of addresses in front of\n"
	"the intake and of the proxy too.\n"
	"Signals: SIGHUP, SIGUSR1 and SIGTERM mean what they mean to cage-proxy.\n"
	"Exit codes: 0 good (SIGTERM), 1 failed, or the proxy has ended, 2 wrong usage.\n";

static const char *take_intake(void *place, const char *value)
{
	struct listen_spec *at = place;
	const char *why = NULL;
	if (!listen_spec_parse(value, at, &why))
		return why;
	return at->kind == LISTEN_TCP ? NULL : "expected ADDR:PORT";
}

static bool take_number(uint64_t *out, const char *value, uint64_t least, uint64_t most)
{
	return slice_to_u64(slice_str(value), most, out) && *out >= least;
}

static const char *take_log_bytes(void *place, const char *value)
{
	return take_number(place, value, LIMIT_GATEWAY_LOG_LEAST, INT64_MAX)
		       ? NULL
		       : "expected a number of bytes, 4096 at least";
}

static const char *take_log_files(void *place, const char *value)
{
	return take_number(place, value, 1, LIMIT_GATEWAY_LOG_FILES_MAX) ? NULL : "expected a number from 1 to 64";
}

#define AT(field) offsetof(struct gateway_options, field)

static const struct option_row rows[] = {
	{"intake", OPTION_TAKEN, AT(at), take_intake},
	{"intake-cert", OPTION_TEXT, AT(cert), NULL},
	{"intake-key", OPTION_TEXT, AT(key), NULL},
	{"intake-token", OPTION_TEXT, AT(token), NULL},
	{"state", OPTION_TEXT, AT(state), NULL},
	{"policy", OPTION_TEXT, AT(policy), NULL},
	{"ca-dir", OPTION_TEXT, AT(ca_dir), NULL},
	{"keys", OPTION_TEXT, AT(keys), NULL},
	{"log-dir", OPTION_TEXT, AT(log_dir), NULL},
	{"log-bytes", OPTION_TAKEN, AT(log_bytes), take_log_bytes},
	{"log-files", OPTION_TAKEN, AT(log_files), take_log_files},
};

static const struct option_table table = {.program = "cage-gateway",
					  .help = help_text,
					  .more = "--help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0]),
					  .ends_at_word = true};

static int wrong(const char *option, const char *why)
{
	return option_table_wrong(&table, option, why);
}

static int check(const struct gateway_options *o)
{
	const struct {
		const char *option, *value;
	} needed[] = {{"--intake-cert", o->cert},
		      {"--intake-key", o->key},
		      {"--intake-token", o->token},
		      {"--state", o->state},
		      {"--policy", o->policy}};
	if (o->at.kind != LISTEN_TCP || o->at.at.addr.family == 0)
		return wrong("--intake", "is needed");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i].value)
			return wrong(needed[i].option, "is needed");
	if (strlen(o->state) > LIMIT_GATEWAY_STATE)
		return wrong("--state", "the path is too long for a socket in it");
	if (o->log_dir && (o->log_dir[0] == '\0' || strlen(o->log_dir) >= LIMIT_GATEWAY_DIR))
		return wrong("--log-dir", "expected a path of 1 to 255 bytes");
	return OPTIONS_GO_ON;
}

/* An option of cage-proxy that is ours to set, also as getopt takes it: shortened, or with its value. */
static bool is_ours(const char *word)
{
	static const char *const ours[] = {"--policy", "--sandboxes", "--sandbox", "--admin", "--log", "--reloads"};
	const size_t n = strcspn(word, "=");
	for (size_t i = 0; n > 2 && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(word, ours[i], n) == 0)
			return true;
	return false;
}

int gateway_options_parse(int argc, char **argv, struct gateway_options *out)
{
	*out = (struct gateway_options){.log_bytes = LIMIT_GATEWAY_LOG_BYTES, .log_files = LIMIT_GATEWAY_LOG_FILES};
	const int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return wrong(argv[optind], "options of cage-proxy stand behind --");
	for (int i = optind; i < argc; i++)
		if (is_ours(argv[i]))
			return wrong(argv[i], "the gateway sets it itself for cage-proxy");
	out->proxy = argv + optind;
	return check(out);
}
