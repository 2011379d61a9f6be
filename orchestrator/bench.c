/* cage bench aci: cage-serve knows the configuration, and becomes cage-aci with it; the words are passed on to that. */
#include "orchestrator/bench.h"

#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/serve.h"
#include "orchestrator/words.h"

static const char help_text[] =
	"usage: cage bench aci --config FILE [--state DIR] [options] [-- CMD [ARGS]]\n"
	"\n"
	"Measures how fast sandboxes of a backend come: groups of Azure Container Instances, as the\n"
	"configuration of a service has them. It makes some, waits for the first line that CMD prints\n"
	"(default: echo ready), and removes them, which costs money.\n"
	"\n"
	"  --config FILE          of cage serve, with `backends: {aci: ...}`\n"
	"  --state DIR            of the service (default: that of cage serve)\n"
	"  --runs N               so many (default 5, at most 100; 0: only removes what a bench that was\n"
	"                         killed has left, as each does first)\n"
	"  --parallel N           so many at the same time (default 1, at most 10)\n"
	"  --yes                  do not ask; needed where there is no terminal\n"
	"  --json                 one JSON object, with the times of each\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"docs/azure.md says what is measured. Exit codes: 0 good, 1 a group failed or could not be\n"
	"removed, 2 wrong usage, or not wanted.\n";

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The service's own options, each with a value in the next word, ... */
static bool is_own(const char *word)
{
	return strcmp(word, "--config") == 0 || strcmp(word, "--state") == 0;
}

/* ... or in the same one. */
static bool is_own_with_value(const char *word)
{
	return strncmp(word, "--config=", 9) == 0 || strncmp(word, "--state=", 8) == 0;
}

static bool has_config(const struct words *own)
{
	for (size_t i = 0; i < own->n; i++)
		if (strncmp(own->list[i], "--config", 8) == 0)
			return true;
	say("bench: --config FILE is needed: that of cage serve, with `backends: {aci: ...}`; cage bench --help says "
	    "more");
	return false;
}

/* They go before the rest. False: one has no value. */
static bool sort_words(int argc, char **argv, struct words *own, struct words *rest)
{
	int i = 2;
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const bool takes_next = is_own(argv[i]);
		if (takes_next && i + 1 == argc) {
			say("bench: %s: expected a value", argv[i]);
			return false;
		}
		words_add(takes_next || is_own_with_value(argv[i]) ? own : rest, "%s", argv[i]);
		if (takes_next)
			words_add(own, "%s", argv[++i]);
	}
	for (; i < argc; i++)
		words_add(rest, "%s", argv[i]);
	return !own->failed && !rest->failed;
}

static int become(const struct words *own, const struct words *rest)
{
	struct words all = {0};
	words_add(&all, "cage-serve");
	for (size_t i = 0; i < own->n; i++)
		words_add(&all, "%s", own->list[i]);
	words_add(&all, "--backend");
	words_add(&all, "aci");
	words_add(&all, "--");
	words_add(&all, "bench");
	for (size_t i = 0; i < rest->n; i++)
		words_add(&all, "%s", rest->list[i]);
	const int code = all.failed ? 1 : cmd_serve((int)all.n, all.list);
	words_free(&all);
	return code;
}

int cmd_bench(int argc, char **argv)
{
	struct words own = {0}, rest = {0};
	if (argc > 1 && (is_help(argv[1]) || (argc > 2 && is_help(argv[2])))) {
		fputs(help_text, stdout);
		return usage_printed();
	}
	if (argc < 2 || strcmp(argv[1], "aci") != 0) {
		say("bench: expected aci; cage bench --help says more");
		return 2;
	}
	const bool is_good = sort_words(argc, argv, &own, &rest) && has_config(&own);
	const int code = is_good ? become(&own, &rest) : 2;
	words_free(&own);
	words_free(&rest);
	return code;
}
