/* Parsing of the command line, and the help text that describes it. */
#include "orchestrator/service/options.h"

#include <getopt.h>
#include <stdio.h>

#include "core/base/say.h"

static const char help_text[] =
	"usage: cage serve [options]\n"
	"\n"
	"Makes sandboxes on demand, each a locked room as cage run has it, for who asks over an\n"
	"HTTP API (cage create and others are its clients; docs/service.md).\n"
	"\n"
	"  --config FILE        limits, profiles, quotas, prices, alerts (default: none)\n"
	"  --state DIR          where it keeps what it knows, and its sandboxes (default\n"
	"                       /var/lib/cage/serve for root, else ~/.local/state/cage/serve)\n"
	"  --listen WHERE       unix:PATH, or ADDRESS:PORT, which needs a token; several can be\n"
	"                       given (default unix:DIR/socket)\n"
	"  --new-token          make the token for TCP, print it once, and exit; one that there was\n"
	"                       is good no longer, at once\n"
	"  --check              say what is wrong with the configuration, and exit\n"
	"  --backend NAME -- WORDS\n"
	"                       become the program that makes the sandboxes of that backend, podman or\n"
	"                       aci, with all that is configured for it: check, list or remove ID\n"
	"                       (cage-pod --help, cage-aci --help)\n"
	"  --version            print the version and exit\n"
	"  --help               print this and exit\n"
	"\n"
	"Variables over the configuration: CAGE_LISTEN (several with commas), CAGE_STATE,\n"
	"CAGE_POLICIES_DIR, CAGE_RUNNING, CAGE_QUEUED, CAGE_STARTS, CAGE_RETENTION.\n"
	"\n"
	"Its end is not the end of its sandboxes: the next one finds them again. SIGTERM ends it.\n"
	"The configuration is read at the start: for another one, end it and start it again.\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage or configuration.\n";

enum { OPT_CONFIG = 1, OPT_STATE, OPT_LISTEN, OPT_NEW_TOKEN, OPT_CHECK, OPT_BACKEND, OPT_VERSION, OPT_HELP };

static const struct option known[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"state", required_argument, NULL, OPT_STATE},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"new-token", no_argument, NULL, OPT_NEW_TOKEN},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"check", no_argument, NULL, OPT_CHECK},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static enum serve_action print(const char *text)
{
	return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? SERVE_EXIT : SERVE_WRONG;
}

static enum serve_action wrong(void)
{
	say("cage serve --help lists all options");
	return SERVE_WRONG;
}

static enum serve_action take(struct serve_options *o, int opt, enum serve_action then)
{
	switch (opt) {
	case OPT_CONFIG:
		o->config = optarg;
		return then;
	case OPT_STATE:
		o->state = optarg;
		return then;
	case OPT_LISTEN:
		if (o->n_listen == LIMIT_SERVE_LISTENERS)
			return wrong();
		o->listen[o->n_listen++] = optarg;
		return then;
	case OPT_NEW_TOKEN:
		return SERVE_NEW_TOKEN;
	case OPT_CHECK:
		return SERVE_CHECK;
	case OPT_BACKEND:
		o->backend = optarg;
		return SERVE_BACKEND;
	case OPT_VERSION:
		return print("cage " CAGE_VERSION "\n");
	case OPT_HELP:
	case 'h':
		return print(help_text);
	default:
		return wrong();
	}
}

enum serve_action serve_options_read(int argc, char **argv, struct serve_options *out)
{
	enum serve_action action = SERVE_RUN;
	int opt;
	*out = (struct serve_options){.n_listen = 0};
	while ((opt = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		action = take(out, opt, action);
		if (action == SERVE_EXIT || action == SERVE_WRONG)
			return action;
	}
	out->words = argv + optind;
	if (action == SERVE_BACKEND ? optind < argc : optind == argc)
		return action;
	if (optind == argc) {
		say("--backend: expected -- and a word, such as list");
		return wrong();
	}
	say("%s: is not an option", argv[optind]);
	return wrong();
}
