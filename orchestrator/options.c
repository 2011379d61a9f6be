/* Parsing of the command line of cage run, and the help text that describes it. */
#include "orchestrator/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/base/usage.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/shown_source.h"

static const char help_text[] =
	"usage: cage run [options] -- CMD [ARGS]\n"
	"\n"
	"Runs CMD in a locked room: its only way out is a proxy and a DNS filter that let\n"
	"out what the policy allows. No root, no daemon; everything ends with CMD.\n"
	"\n"
	"  --policy FILE        the policy (docs/policy.md; default policies/default.yaml)\n"
	"  --agent NAME         the ready policy of a known agent, such as claude-code; with\n"
	"                       --policy, only that one counts\n"
	"  --workspace DIR      CMD works in DIR on a view of its own: what it changes is listed\n"
	"                       at the end and kept as a patch (cage apply)\n"
	"  --apply              with --workspace: the changes are made in DIR when CMD has ended\n"
	"                       with 0, unless programs of this machine would run or obey one of\n"
	"                       them unasked, such as a hook of git (cage apply --even-if-run)\n"
	"  --bind SRC[:DST]     DIR or file of this machine that CMD sees and may change\n"
	"  --bind-ro SRC[:DST]  the same, to read only\n"
	"  --workdir DIR        where CMD begins (default: the workspace, else the first --bind,\n"
	"                       else its home)\n"
	"  --limit WHAT=N,...   mem, cpu, pids, files, fsize, time: such as mem=2G,cpu=1,time=10m\n"
	"  --env NAME[=VALUE]   a variable for CMD; nothing else of the environment is seen\n"
	"  --secret ID=env:NAME the value of the policy's secret ID is that of the variable NAME;\n"
	"                       CMD sees a placeholder\n"
	"  --log FILE           where the decision log is kept; that of the DNS filter is FILE.dns\n"
	"                       (default: both end with the run)\n"
	"  --log-max BYTES      no more than that in each of both, and no traffic from then on\n"
	"  --ca-dir DIR         the CA and its keys (default as cage-proxy has it)\n"
	"  --sandbox ID         written into each log line (default \"run\")\n"
	"  --root DIR           the root of the room, to be read only, in the place of the programs\n"
	"                       of this machine\n"
	"  --tmpfs DIR[:SIZE]   a directory in memory, such as /workspace:256M\n"
	"  --mode MODE          how the room is locked: auto, netns or seccomp (default auto)\n"
	"  --out BYTES          all that CMD may send\n"
	"  --socks unix:PATH, --tools unix:PATH, --control fd:N, --env-from NAME=VARIABLE\n"
	"                       for programs that run sandboxes (docs/run.md)\n"
	"  --quiet              no summary of decisions at the end\n"
	"  -h, --help           print this and exit\n"
	"\n"
	"Of an option that is given twice the last one counts; --bind, --bind-ro, --tmpfs, --env\n"
	"(each name), --secret and --limit (each WHAT) add up.\n"
	"\n"
	"Ctrl-C asks CMD to end; the second one within two seconds kills it, the third one the gate too.\n"
	"Exit codes: those of CMD; 128 and the number of the signal that killed it; 1 the room\n"
	"could not be made, or CMD ended with 0 and its log, output or changes are lost or could\n"
	"not be applied; 2 wrong usage or wrong policy; 78 CMD can't be locked in here.\n";

enum {
	OPT_POLICY = 1,
	OPT_AGENT,
	OPT_WORKSPACE,
	OPT_APPLY,
	OPT_BIND,
	OPT_BIND_RO,
	OPT_WORKDIR,
	OPT_LIMIT,
	OPT_ENV_FROM,
	OPT_ENV,
	OPT_SECRET,
	OPT_LOG,
	OPT_LOG_MAX,
	OPT_CA_DIR,
	OPT_SANDBOX,
	OPT_MODE,
	OPT_QUIET,
	OPT_ROOT,
	OPT_TMPFS,
	OPT_SOCKS,
	OPT_TOOLS,
	OPT_OUT,
	OPT_CONTROL,
	OPT_HELP
};

static const struct option long_options[] = {
	{"policy", required_argument, NULL, OPT_POLICY},
	{"agent", required_argument, NULL, OPT_AGENT},
	{"workspace", required_argument, NULL, OPT_WORKSPACE},
	{"apply", no_argument, NULL, OPT_APPLY},
	{"bind", required_argument, NULL, OPT_BIND},
	{"bind-ro", required_argument, NULL, OPT_BIND_RO},
	{"workdir", required_argument, NULL, OPT_WORKDIR},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"env", required_argument, NULL, OPT_ENV},
	{"env-from", required_argument, NULL, OPT_ENV_FROM},
	{"secret", required_argument, NULL, OPT_SECRET},
	{"log", required_argument, NULL, OPT_LOG},
	{"log-max", required_argument, NULL, OPT_LOG_MAX},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"sandbox", required_argument, NULL, OPT_SANDBOX},
	{"mode", required_argument, NULL, OPT_MODE},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"root", required_argument, NULL, OPT_ROOT},
	{"tmpfs", required_argument, NULL, OPT_TMPFS},
	{"socks", required_argument, NULL, OPT_SOCKS},
	{"tools", required_argument, NULL, OPT_TOOLS},
	{"out", required_argument, NULL, OPT_OUT},
	{"control", required_argument, NULL, OPT_CONTROL},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static enum options_action usage_error(const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("cage run --help lists all options");
	return OPTIONS_EXIT_USAGE;
}

/* Handed on to the gate, which checks the value. */
enum options_action run_options_to_room(struct run_options *o, const char *option, const char *value)
{
	words_add(&o->room, "%s", option);
	words_add(&o->room, "%s", value);
	return o->room.failed ? usage_error(option, "no memory") : OPTIONS_RUN;
}

/* Handed on to the proxy, which checks the value. */
static enum options_action to_proxy(struct run_options *o, const char *option, const char *value)
{
	words_add(&o->proxy, "%s", option);
	words_add(&o->proxy, "%s", value);
	return o->proxy.failed ? usage_error(option, "no memory") : OPTIONS_RUN;
}

/* SRC or SRC:DST. What is named from here on is seen under its whole name, and what links of root lead to under the name that
 * was given. */
static enum options_action add_bind(struct run_options *o, const char *option, const char *text)
{
	const size_t len = strcspn(text, ":");
	const char *place = text[len] ? text + len + 1 : "";
	char source[PATH_MAX], whole[PATH_MAX], *bind = NULL;
	if (snprintf(source, sizeof(source), "%.*s", (int)len, text) >= (int)sizeof(source))
		return usage_error(option, "the name is too long");
	enum shown_way way = shown_source(option, source, whole, sizeof(whole));
	if (way == SHOWN_REFUSED)
		return OPTIONS_EXIT_USAGE;
	if (strchr(whole, ':'))
		return usage_error(option, "a name with a colon in it can't be shown");
	if (!place[0] && source[0] == '/' && way == SHOWN_BY_LINK)
		place = source;
	if (asprintf(&bind, "%s%s%s", whole, place[0] ? ":" : "", place) < 0)
		return usage_error(option, "no memory");
	enum options_action action = run_options_to_room(o, option, bind);
	free(bind);
	return action;
}

static enum options_action set_root(struct run_options *o, const char *dir)
{
	char whole[PATH_MAX];
	if (shown_source("--root", dir, whole, sizeof(whole)) == SHOWN_REFUSED)
		return OPTIONS_EXIT_USAGE;
	return run_options_to_room(o, "--root", whole);
}

static enum options_action add_env(struct run_options *o, const char *text)
{
	if (text[0] == '=' || text[0] == '\0')
		return usage_error("--env", "expected NAME or NAME=VALUE");
	words_add(&o->env, "%s", text);
	return OPTIONS_RUN;
}

/* For a launcher: no value is among our arguments, which everybody may read, and no name of CMD's variables among ours. */
static enum options_action add_env_from(struct run_options *o, const char *text)
{
	const char *from = strchr(text, '='), *value = from ? getenv(from + 1) : NULL;
	if (!value || from == text)
		return usage_error("--env-from", "expected NAME=VARIABLE, of a variable that is set");
	words_add(&o->env, "%.*s=%s", (int)(from - text), text, value);
	return OPTIONS_RUN;
}

static enum options_action add_secret(struct run_options *o, const char *text)
{
	const char *from = strstr(text, "=env:");
	if (!from || from == text || from[5] == '\0')
		return usage_error("--secret", "expected ID=env:NAME");
	words_add(&o->secrets, "%s", text);
	return OPTIONS_RUN;
}

static enum options_action set_sandbox(struct run_options *o, const char *text)
{
	o->sandbox = text;
	return sandbox_id_is_good(slice_str(text)) ? OPTIONS_RUN : usage_error("--sandbox", "expected " SANDBOX_ID);
}

static enum options_action set(const char **where, const char *value)
{
	*where = value;
	return OPTIONS_RUN;
}

static enum options_action turn_on(bool *flag)
{
	*flag = true;
	return OPTIONS_RUN;
}

static enum options_action take_option(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_POLICY:
		return set(&o->policy, arg);
	case OPT_AGENT:
		return set(&o->agent, arg);
	case OPT_WORKSPACE:
		return set(&o->workspace, arg);
	case OPT_APPLY:
		return turn_on(&o->apply);
	case OPT_BIND:
		return add_bind(o, "--bind", arg);
	case OPT_BIND_RO:
		return add_bind(o, "--bind-ro", arg);
	case OPT_WORKDIR:
		return run_options_to_room(o, "--workdir", arg);
	case OPT_LIMIT:
		return run_options_to_room(o, "--limit", arg);
	case OPT_ENV:
		return add_env(o, arg);
	case OPT_ENV_FROM:
		return add_env_from(o, arg);
	case OPT_SECRET:
		return add_secret(o, arg);
	case OPT_LOG:
		return set(&o->log, arg);
	case OPT_LOG_MAX:
		return set(&o->log_max, arg);
	case OPT_CA_DIR:
		return set(&o->ca_dir, arg);
	case OPT_SANDBOX:
		return set_sandbox(o, arg);
	case OPT_MODE:
		return set(&o->mode, arg);
	case OPT_ROOT:
		return set_root(o, arg);
	case OPT_TMPFS:
		return run_options_to_room(o, "--tmpfs", arg);
	case OPT_SOCKS:
		return to_proxy(o, "--socks", arg);
	case OPT_TOOLS:
		return to_proxy(o, "--tools", arg);
	case OPT_OUT:
		return to_proxy(o, "--out", arg);
	case OPT_CONTROL:
		return set(&o->control, arg);
	case OPT_QUIET:
		return turn_on(&o->quiet);
	case 'h':
	case OPT_HELP:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	default:
		return OPTIONS_EXIT_USAGE;
	}
}

static enum options_action say_fault(int opt, char **argv)
{
	char word[USAGE_WORD];
	const char *why = usage_fault(opt, argv, long_options, word);
	return usage_error(word, why);
}

static enum options_action take_all(int argc, char **argv, struct run_options *out)
{
	int opt;
	*out = (struct run_options){.mode = "auto", .sandbox = "run"};
	while ((opt = usage_next(argc, argv, "+:h", long_options, NULL)) != -1) {
		enum options_action next =
			opt == '?' || opt == ':' ? say_fault(opt, argv) : take_option(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (out->apply && !out->workspace)
		return usage_error("--apply", "needs --workspace");
	return OPTIONS_RUN;
}

enum options_action run_options_parse(int argc, char **argv, struct run_options *out)
{
	enum options_action action = take_all(argc, argv, out);
	out->command = argv + optind;
	if (action == OPTIONS_RUN && optind >= argc)
		return usage_error("CMD", "is required: cage run [options] -- CMD [ARGS]");
	return action;
}

enum options_action run_options_only(int argc, char **argv, struct run_options *out)
{
	enum options_action action = take_all(argc, argv, out);
	if (action != OPTIONS_RUN)
		return action;
	if (optind < argc)
		return usage_error(argv[optind], "only options are expected, and no command");
	if (argc > 1 && strcmp(argv[argc - 1], "--") == 0)
		return usage_error("--", "only options are expected, and no command");
	return OPTIONS_RUN;
}

int run_options_code(enum options_action action)
{
	switch (action) {
	case OPTIONS_RUN:
		return OPTIONS_GO_ON;
	case OPTIONS_EXIT_OK:
		return usage_printed();
	case OPTIONS_EXIT_USAGE:
		break;
	}
	return USAGE_WRONG;
}

void run_options_free(struct run_options *o)
{
	words_free(&o->room);
	words_free(&o->env);
	words_free(&o->secrets);
	words_free(&o->proxy);
}
