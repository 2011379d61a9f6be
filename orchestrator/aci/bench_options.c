/* What a bench is asked for, and whether whoever asks knows what it costs. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "orchestrator/aci/bench.h"

static const char help_text[] =
	"usage: cage bench aci --config FILE [--state DIR] [options] [-- CMD [ARGS]]\n"
	"       cage-aci OPTIONS bench [options] [-- CMD [ARGS]]\n"
	"\n"
	"Measures how fast groups of Azure Container Instances come, with the subscription and the\n"
	"images of the configuration of a service, in the first of its regions: it makes some, waits for\n"
	"the first line that CMD prints (default: echo ready), and removes them. That costs money.\n"
	"\n"
	"  --runs N               so many (default 5, at most 100; 0: only removes what a bench that was\n"
	"                         killed has left, as each does first)\n"
	"  --parallel N           so many at the same time (default 1, at most 10)\n"
	"  --yes                  do not ask\n"
	"  --json                 one JSON object, with the times of each\n"
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"One at a time for a service: a second one removes the groups of the first. Ctrl-C ends it, and\n"
	"removes all that it has made.\n"
	"Exit codes: 0 good, 1 a group failed or could not be removed, 2 wrong usage, or not wanted.\n";

static const char *take_runs(void *place, const char *value)
{
	return slice_to_u64(slice_str(value), LIMIT_BENCH_RUNS, place) ? NULL : "expected a number from 0 to 100";
}

static const char *take_parallel(void *place, const char *value)
{
	uint64_t *parallel = place;
	return slice_to_u64(slice_str(value), LIMIT_BENCH_PARALLEL, parallel) && *parallel > 0
		       ? NULL
		       : "expected a number from 1 to 10";
}

#define AT(field) offsetof(struct bench_options, field)

static const struct option_row rows[] = {
	{"runs", OPTION_TAKEN, AT(runs), take_runs},
	{"parallel", OPTION_TAKEN, AT(parallel), take_parallel},
	{"yes", OPTION_FLAG, AT(yes), NULL},
	{"json", OPTION_FLAG, AT(json), NULL},
};

static const struct option_table table = {.program = "cage-aci",
					  .help = help_text,
					  .more = "cage bench aci --help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0]),
					  .ends_at_word = true};

int bench_options_parse(int argc, char **argv, struct bench_options *out)
{
	static char *usual[] = {"echo", "ready", NULL};
	*out = (struct bench_options){.runs = 5, .parallel = 1, .command = usual, .n_command = 2};
	optind = 1;
	const int code = option_table_read(&table, argc, argv, out);
	if (code == OPTIONS_GO_ON && optind < argc) {
		out->command = argv + optind;
		out->n_command = (size_t)(argc - optind);
	}
	return code;
}

/* ---- money ---- */

static double amount(const struct bench *b, const struct instance_share *share, uint64_t seconds)
{
	const uint64_t all = b->options->runs * seconds;
	return (double)cost_nano(&b->own.prices, all * share->cpu_hundredths * 10000,
				 all * share->memory_thousandths * 1000) /
	       1e9;
}

static void say_cost(const struct bench *b, const struct instance_share *share)
{
	say("bench: %llu groups in %s, each of %.2f vCPU and %.2f GB, and removed after %d s at the latest",
	    (unsigned long long)b->options->runs, b->own.regions.list[0], (double)share->cpu_hundredths / 100,
	    (double)share->memory_thousandths / 1000, LIMIT_BENCH_RUN_S);
	if (b->own.prices.is_set)
		say("bench: that costs %.4f %s if each takes a minute, and %.4f at the most", amount(b, share, 60),
		    b->own.currency, amount(b, share, LIMIT_BENCH_RUN_S));
	else
		say("bench: what that costs is not known, since no prices are configured");
}

bool bench_confirm(const struct bench *b, const struct instance_share *share)
{
	char line[16];
	say_cost(b, share);
	if (b->options->yes)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		say("bench: --yes is needed where nobody can be asked");
		return false;
	}
	fputs("Go on? [y/N] ", stderr);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}
