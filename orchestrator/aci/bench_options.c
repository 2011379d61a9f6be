/* What a bench is asked for, and whether whoever asks knows what it costs. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/usage.h"
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
	"  -h, --help             print this and exit\n"
	"\n"
	"One at a time for a service: a second one removes the groups of the first. Ctrl-C ends it, and\n"
	"removes all that it has made.\n"
	"Exit codes: 0 good, 1 a group failed or could not be removed, 2 wrong usage, or not wanted.\n";

static const struct option long_options[] = {
	{"runs", required_argument, NULL, 1}, {"parallel", required_argument, NULL, 2}, {"yes", no_argument, NULL, 3},
	{"json", no_argument, NULL, 4},       {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

static enum options_action wrong(const char *option, const char *why)
{
	say("bench: %s: %s", option, why);
	return OPTIONS_EXIT_USAGE;
}

static enum options_action take(struct bench_options *o, int opt, const char *value)
{
	switch (opt) {
	case 1:
		return slice_to_u64(slice_str(value), LIMIT_BENCH_RUNS, &o->runs)
			       ? OPTIONS_RUN
			       : wrong("--runs", "expected a number from 0 to 100");
	case 2:
		return slice_to_u64(slice_str(value), LIMIT_BENCH_PARALLEL, &o->parallel) && o->parallel > 0
			       ? OPTIONS_RUN
			       : wrong("--parallel", "expected a number from 1 to 10");
	case 3:
		o->yes = true;
		return OPTIONS_RUN;
	case 4:
		o->json = true;
		return OPTIONS_RUN;
	default:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
}

enum options_action bench_options_parse(int argc, char **argv, struct bench_options *out)
{
	static char *usual[] = {"echo", "ready", NULL};
	char word[USAGE_WORD];
	int opt;
	*out = (struct bench_options){.runs = 5, .parallel = 1, .command = usual, .n_command = 2};
	optind = 1;
	while ((opt = usage_next(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		const enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind < argc) {
		out->command = argv + optind;
		out->n_command = (size_t)(argc - optind);
	}
	return OPTIONS_RUN;
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
