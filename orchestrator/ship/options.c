/* The command line of cage-ship. */
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "core/base/option_table.h"
#include "core/base/units.h"
#include "orchestrator/ship/forms.h"
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
	"  --once                 ship what there is, say how many lines that were, and end: 0 if all of\n"
	"                         it was taken, 1 also for a log that is not there or is none\n"
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"SIGUSR1 says how far it is; SIGTERM ends it. Exit codes: 0 good, 1 failed, 2 wrong usage.\n";

/* ---- values ---- */

static const char *take_root(struct ship_options *o, enum root_kind kind, const char *path)
{
	const size_t n = strlen(path);
	if (o->n_roots == LIMIT_SHIP_ROOTS)
		return "there are too many logs and directories";
	if (n == 0 || n >= SHIP_PATH - 512 || path[n - 1] == '/')
		return "expected a path without a slash at its end";
	o->roots[o->n_roots++] = (struct root){kind, path};
	return NULL;
}

static const char *take_log(void *place, const char *value)
{
	return take_root(place, ROOT_LOG, value);
}

static const char *take_logs(void *place, const char *value)
{
	return take_root(place, ROOT_TREE, value);
}

static const char *take_kept(void *place, const char *value)
{
	return take_root(place, ROOT_KEPT, value);
}

static const char *take_age(void *place, const char *value)
{
	return units_duration(slice_str(value), LIMIT_SHIP_AGE_MAX_S, place)
		       ? NULL
		       : "expected a time such as 5s or 1m, of at most an hour";
}

/* ---- the table ---- */

#define AT(field) offsetof(struct ship_options, field)

static const struct option_row rows[] = {
	{"log", OPTION_TAKEN, 0, take_log},
	{"logs", OPTION_TAKEN, 0, take_logs},
	{"kept", OPTION_TAKEN, 0, take_kept},
	{"endpoint", OPTION_TEXT, AT(azure.endpoint), NULL},
	{"rule", OPTION_TEXT, AT(rule), NULL},
	{"stream", OPTION_TEXT, AT(stream), NULL},
	{"state", OPTION_TEXT, AT(state), NULL},
	{"status", OPTION_TEXT, AT(status), NULL},
	{"credentials", OPTION_TAKEN, AT(azure.credentials), azure_take_credentials},
	{"audience", OPTION_TEXT, AT(azure.resource), NULL},
	{"ca-file", OPTION_TEXT, AT(azure.ca_file), NULL},
	{"age", OPTION_TAKEN, AT(age_s), take_age},
	{"once", OPTION_FLAG, AT(once), NULL},
};

static const struct option_table table = {.program = "cage-ship",
					  .help = help_text,
					  .more = "--help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0])};

static int wrong(const char *option, const char *why)
{
	return option_table_wrong(&table, option, why);
}

/* ---- all of it ---- */

static struct slice text_of(const char *text)
{
	return text ? slice_str(text) : SLICE_NONE;
}

static int check(const struct ship_options *o)
{
	if (o->n_roots == 0)
		return wrong("--log", "what is to be shipped? --log FILE, --logs DIR or both");
	if (!ship_endpoint_is_good(text_of(o->azure.endpoint)))
		return wrong("--endpoint", SHIP_ENDPOINT_EXPECTED);
	if (!ship_rule_is_good(text_of(o->rule)))
		return wrong("--rule", SHIP_RULE_EXPECTED);
	if (!ship_stream_is_good(text_of(o->stream)))
		return wrong("--stream", SHIP_STREAM_EXPECTED);
	if (!ship_endpoint_is_good(text_of(o->azure.resource)))
		return wrong("--audience", SHIP_AUDIENCE_EXPECTED);
	return OPTIONS_GO_ON;
}

int ship_options_parse(int argc, char **argv, struct ship_options *out)
{
	*out = (struct ship_options){.azure.resource = SHIP_RESOURCE, .age_s = LIMIT_SHIP_AGE_S};
	const int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	return optind < argc ? wrong(argv[optind], "expected nothing behind the options") : check(out);
}
