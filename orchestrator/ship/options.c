/* The command line of cage-ship. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/units.h"
#include "core/base/usage.h"
#include "orchestrator/ship/ship.h"

static const char help_text[] =
	"usage: cage-ship --log FILE... --endpoint URL --rule ID --stream NAME [options]\n"
	"       cage-ship --logs DIR... --endpoint URL --rule ID --stream NAME [options]\n"
	"\n"
	"Sends copies of decision logs to Azure's Logs Ingestion API as they are written (docs/azure-logs.md). It only "
	"reads them.\n"
	"\n"
	"  --log FILE             a log, and what was rotated from it: FILE.x and FILE-x beside it; repeated\n"
	"  --logs DIR             all logs (*.jsonl) in DIR and in the directories right below it; repeated.\n"
	"                         No agent may be able to write there\n"
	"  --kept DIR             logs to which nothing is added any more: removed when they are shipped; repeated\n"
	"  --endpoint URL         of the data collection endpoint or rule: https://NAME.ingest.monitor.azure.com\n"
	"  --rule ID              immutable id of the data collection rule: dcr-...\n"
	"  --stream NAME          of that rule: Custom-CageLog_CL\n"
	"  --state DIR            how far each log was shipped (default /var/lib/cage/ship for root, else\n"
	"                         ship in $XDG_STATE_HOME/cage)\n"
	"  --status FILE          JSON, written anew each 5 s: lines, lag, last trouble\n"
	"  --credentials WORD     auto (default), secret, workload, identity or az (docs/azure.md)\n"
	"  --audience URL         whom tokens are for (default " SHIP_RESOURCE "; other clouds:\n"
	"                         https://monitor.azure.us, https://monitor.azure.cn)\n"
	"  --ca-file FILE         whom to believe at the endpoint (default: the certificates of the system)\n"
	"  --age TIME             that a line waits for others at most (default 5s)\n"
	"  --once                 ship what there is, and end: 0 if all of it was taken\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"SIGUSR1 says how far it is; SIGTERM ends it. Exit codes: 0 good, 1 failed, 2 wrong usage.\n";

enum {
	OPT_LOG = 1,
	OPT_LOGS,
	OPT_KEPT,
	OPT_ENDPOINT,
	OPT_RULE,
	OPT_STREAM,
	OPT_STATE,
	OPT_STATUS,
	OPT_CREDENTIALS,
	OPT_AUDIENCE,
	OPT_CA_FILE,
	OPT_AGE,
	OPT_ONCE
};

static const struct option long_options[] = {
	{"log", required_argument, NULL, OPT_LOG},
	{"logs", required_argument, NULL, OPT_LOGS},
	{"kept", required_argument, NULL, OPT_KEPT},
	{"endpoint", required_argument, NULL, OPT_ENDPOINT},
	{"rule", required_argument, NULL, OPT_RULE},
	{"stream", required_argument, NULL, OPT_STREAM},
	{"state", required_argument, NULL, OPT_STATE},
	{"status", required_argument, NULL, OPT_STATUS},
	{"credentials", required_argument, NULL, OPT_CREDENTIALS},
	{"audience", required_argument, NULL, OPT_AUDIENCE},
	{"ca-file", required_argument, NULL, OPT_CA_FILE},
	{"age", required_argument, NULL, OPT_AGE},
	{"once", no_argument, NULL, OPT_ONCE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	return OPTIONS_EXIT_USAGE;
}

/* ---- values ---- */

static enum options_action take_root(struct ship_options *o, int opt, const char *path)
{
	static const enum root_kind kinds[] = {[OPT_LOG] = ROOT_LOG, [OPT_LOGS] = ROOT_TREE, [OPT_KEPT] = ROOT_KEPT};
	const size_t n = strlen(path);
	if (o->n_roots == LIMIT_SHIP_ROOTS)
		return wrong("--log", "there are too many logs and directories");
	if (n == 0 || n >= SHIP_PATH - 512 || path[n - 1] == '/')
		return wrong(opt == OPT_LOG ? "--log" : "--logs", "expected a path without a slash at its end");
	o->roots[o->n_roots++] = (struct root){kinds[opt], path};
	return OPTIONS_RUN;
}

static enum options_action take_word(struct ship_options *o, int opt, const char *value)
{
	if (opt == OPT_CREDENTIALS && !azure_credentials_read(value, &o->azure.credentials))
		return wrong("--credentials", "expected auto, secret, workload, identity or az");
	if (opt == OPT_AGE && !units_duration(slice_str(value), LIMIT_SHIP_AGE_MAX_S, &o->age_s))
		return wrong("--age", "expected a time such as 5s or 1m, of at most an hour");
	return OPTIONS_RUN;
}

static enum options_action take(struct ship_options *o, int opt, const char *value)
{
	const char **const rows[] = {[OPT_ENDPOINT] = &o->azure.endpoint, [OPT_RULE] = &o->rule,
				     [OPT_STREAM] = &o->stream,           [OPT_STATE] = &o->state,
				     [OPT_STATUS] = &o->status,           [OPT_AUDIENCE] = &o->azure.resource,
				     [OPT_CA_FILE] = &o->azure.ca_file};
	if (opt == 'h') {
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
	if (opt == OPT_LOG || opt == OPT_LOGS || opt == OPT_KEPT)
		return take_root(o, opt, value);
	if (opt == OPT_CREDENTIALS || opt == OPT_AGE)
		return take_word(o, opt, value);
	if (opt == OPT_ONCE)
		o->once = true;
	else
		*rows[opt] = value;
	return OPTIONS_RUN;
}

/* ---- all of it ---- */

/* What becomes a part of an address has letters that mean nothing there. */
static bool is_plain(const char *text)
{
	return text && text[0] && strlen(text) <= 256 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == strlen(text);
}

static bool is_address(const char *text)
{
	const size_t n = text ? strlen(text) : 0;
	return n > 0 && n < LIMIT_ARM_URL / 2 && web_url_is_safe(text);
}

/* One that ends with a slash, or has a path or a query, is no place that a path can be put behind. */
static bool is_endpoint(const char *text)
{
	return is_address(text) && !strpbrk(strstr(text, "://") + 3, "/?#");
}

static enum options_action check(const struct ship_options *o)
{
	if (o->n_roots == 0)
		return wrong("--log", "what is to be shipped? --log FILE, --logs DIR or both");
	if (!is_endpoint(o->azure.endpoint))
		return wrong("--endpoint", "expected https://HOST, without a slash at its end");
	if (!is_plain(o->rule))
		return wrong("--rule", "expected the immutable id of a data collection rule, dcr-...");
	if (!is_plain(o->stream))
		return wrong("--stream", "expected the name of a stream, such as Custom-CageLog_CL");
	if (!is_address(o->azure.resource))
		return wrong("--audience", "expected https://HOST");
	return OPTIONS_RUN;
}

enum options_action ship_options_parse(int argc, char **argv, struct ship_options *out)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct ship_options){.azure.resource = SHIP_RESOURCE, .age_s = LIMIT_SHIP_AGE_S};
	while ((opt = usage_next(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind < argc)
		return wrong(argv[optind], "expected nothing behind the options");
	return check(out);
}
