/* The command line of cage-gateway: its own options, then those of cage-proxy. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/gateway/gateway.h"

static const char help_text[] =
	"usage: cage-gateway [options] -- [further options of cage-proxy]\n"
	"\n"
	"A cage-proxy for many sandboxes, and an API by which an orchestrator says which ones\n"
	"(docs/azure.md). All but the last four are required.\n"
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
	"  --log-bytes N          of the decision log, before a new file is begun (default 67108864)\n"
	"  --log-files N          files of before that are kept (default 8)\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"--sandbox, --sandboxes, --log, --admin and --reloads of the proxy are set by this program, and\n"
	"--never for the intake; tell it of addresses in front of that too.\n"
	"Signals: SIGHUP, SIGUSR1 and SIGTERM mean what they mean to cage-proxy.\n"
	"Exit codes: 0 good (SIGTERM), 1 failed, or the proxy has ended, 2 wrong usage.\n";

enum {
	OPT_INTAKE = 1,
	OPT_CERT,
	OPT_KEY,
	OPT_TOKEN,
	OPT_STATE,
	OPT_POLICY,
	OPT_CA_DIR,
	OPT_KEYS,
	OPT_LOG_BYTES,
	OPT_LOG_FILES
};

static const struct option long_options[] = {
	{"intake", required_argument, NULL, OPT_INTAKE},
	{"intake-cert", required_argument, NULL, OPT_CERT},
	{"intake-key", required_argument, NULL, OPT_KEY},
	{"intake-token", required_argument, NULL, OPT_TOKEN},
	{"state", required_argument, NULL, OPT_STATE},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"log-bytes", required_argument, NULL, OPT_LOG_BYTES},
	{"log-files", required_argument, NULL, OPT_LOG_FILES},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action take_intake(struct gateway_options *o, const char *value)
{
	const char *why = "expected ADDR:PORT";
	if (!listen_spec_parse(value, &o->at, &why) || o->at.kind != LISTEN_TCP)
		return options_usage_error("--intake", why);
	return OPTIONS_RUN;
}

static enum options_action take_number(const char *option, const char *value, uint64_t least, uint64_t most,
				       uint64_t *out)
{
	if (slice_to_u64(slice_str(value), most, out) && *out >= least)
		return OPTIONS_RUN;
	return options_usage_error(option, "expected a number within its bounds");
}

static enum options_action take(struct gateway_options *o, int opt, const char *value)
{
	const char **const rows[] = {
		[OPT_CERT] = &o->cert,     [OPT_KEY] = &o->key,       [OPT_TOKEN] = &o->token, [OPT_STATE] = &o->state,
		[OPT_POLICY] = &o->policy, [OPT_CA_DIR] = &o->ca_dir, [OPT_KEYS] = &o->keys};
	switch (opt) {
	case 'h':
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	case OPT_INTAKE:
		return take_intake(o, value);
	case OPT_LOG_BYTES:
		return take_number("--log-bytes", value, LIMIT_GATEWAY_LOG_LEAST, INT64_MAX, &o->log_bytes);
	case OPT_LOG_FILES:
		return take_number("--log-files", value, 1, LIMIT_GATEWAY_LOG_FILES_MAX, &o->log_files);
	default:
		*rows[opt] = value;
		return OPTIONS_RUN;
	}
}

static enum options_action check(const struct gateway_options *o)
{
	const struct {
		const char *option, *value;
	} rows[] = {{"--intake-cert", o->cert},
		    {"--intake-key", o->key},
		    {"--intake-token", o->token},
		    {"--state", o->state},
		    {"--policy", o->policy}};
	if (o->at.kind != LISTEN_TCP || o->at.at.addr.family == 0)
		return options_usage_error("--intake", "is needed");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!rows[i].value)
			return options_usage_error(rows[i].option, "is needed");
	if (strlen(o->state) > LIMIT_GATEWAY_STATE)
		return options_usage_error("--state", "the path is too long for a socket in it");
	return OPTIONS_RUN;
}

enum options_action gateway_options_parse(int argc, char **argv, struct gateway_options *out)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct gateway_options){.log_bytes = LIMIT_GATEWAY_LOG_BYTES, .log_files = LIMIT_GATEWAY_LOG_FILES};
	while ((opt = usage_next(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return options_usage_error(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return options_usage_error(argv[optind], "options of cage-proxy stand behind --");
	out->proxy = argv + optind;
	return check(out);
}
