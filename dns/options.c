/* Parsing of the command line, and the help text that describes it. */
#include "dns/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"

static const char help_text[] =
	"usage: cage-dns --policy FILE [options]\n"
	"\n"
	"A DNS server that answers only names to which the policy could allow a\n"
	"connection, and writes one JSON line about each decision.\n"
	"\n"
	"  --policy FILE      the policy (docs/policy.md); required\n"
	"  --listen WHERE     where clients ask: ADDR:PORT, over UDP and TCP, or fd:N, an\n"
	"                     open socket of either kind; may be repeated (default\n"
	"                     127.0.0.1:5300; port 0 picks one)\n"
	"  --upstream WHERE   a resolver that is asked before upstream.resolvers of the\n"
	"                     policy, and instead of the system's: ADDR, ADDR:PORT or\n"
	"                     tls://ADDR[:PORT]#NAME; may be repeated\n"
	"  --bindings unix:PATH  where cage-proxy (its own option of the same name) is told\n"
	"                     what was answered\n"
	"  --admin WHERE      ADDR:PORT, unix:PATH or off (default 127.0.0.1:8082):\n"
	"                     /healthz /readyz /metrics\n"
	"  --ca-dir DIR       where fingerprint.key is, the same as cage-proxy's; made when\n"
	"                     absent (default /var/lib/cage for root, else\n"
	"                     $XDG_STATE_HOME/cage or ~/.local/state/cage)\n"
	"  --log FILE         the decision log (docs/log.md); - is stdout (default -)\n"
	"  --sandbox ID       written into each log line (default \"default\")\n"
	"  --check            load the policy, run its tests, and exit\n"
	"  --version          print the version and exit\n"
	"  --help             print this and exit\n"
	"\n"
	"Signals: SIGHUP loads the policy again (a bad one is reported and the old one stays),\n"
	"SIGUSR1 opens the log anew, SIGTERM stops: questions under way get 10 s.\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage or wrong policy.\n";

enum {
	OPT_POLICY = 1,
	OPT_LISTEN,
	OPT_UPSTREAM,
	OPT_BINDINGS,
	OPT_ADMIN,
	OPT_CA_DIR,
	OPT_LOG,
	OPT_SANDBOX,
	OPT_CHECK,
	OPT_VERSION,
	OPT_HELP
};

static const struct option long_options[] = {
	{"policy", required_argument, NULL, OPT_POLICY},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"upstream", required_argument, NULL, OPT_UPSTREAM},
	{"bindings", required_argument, NULL, OPT_BINDINGS},
	{"admin", required_argument, NULL, OPT_ADMIN},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"log", required_argument, NULL, OPT_LOG},
	{"sandbox", required_argument, NULL, OPT_SANDBOX},
	{"check", no_argument, NULL, OPT_CHECK},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static enum options_action usage_error(const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("--help lists all options");
	return OPTIONS_EXIT_USAGE;
}

static enum options_action add_listen(struct options *o, const char *text)
{
	const char *why = NULL;
	if (o->n_listen == LIMIT_LISTENERS)
		return usage_error("--listen", "too many listeners");
	struct listen_spec *spec = &o->listen[o->n_listen];
	if (!listen_spec_parse(text, spec, &why))
		return usage_error("--listen", why);
	if (spec->kind == LISTEN_UNIX)
		return usage_error("--listen", "expected ADDRESS:PORT, [IPV6]:PORT or fd:N");
	o->n_listen++;
	return OPTIONS_RUN;
}

static enum options_action add_upstream(struct options *o, const char *text)
{
	if (o->n_upstream == LIMIT_DNS_SERVERS)
		return usage_error("--upstream", "too many resolvers");
	struct policy_resolver *r = &o->upstream[o->n_upstream];
	char *name = o->upstream_names[o->n_upstream];
	struct arena arena;
	arena_init(&arena, KIB(4));
	bool is_good = policy_resolver_parse(slice_str(text), &arena, r);
	if (is_good && r->name.len > 0) {
		memcpy(name, r->name.ptr, r->name.len); /* the name of a host, so it fits */
		r->name = slice_of(name, r->name.len);
	}
	arena_free(&arena);
	if (!is_good)
		return usage_error("--upstream", "expected ADDRESS, ADDRESS:PORT or tls://ADDRESS[:PORT]#NAME");
	o->n_upstream++;
	return OPTIONS_RUN;
}

static enum options_action set_bindings(struct options *o, const char *text)
{
	const char *why = NULL;
	o->has_bindings = true;
	if (!listen_spec_parse(text, &o->bindings, &why) || o->bindings.kind != LISTEN_UNIX)
		return usage_error("--bindings", why ? why : "expected unix:PATH");
	return OPTIONS_RUN;
}

static enum options_action set_admin(struct options *o, const char *text)
{
	const char *why = NULL;
	o->has_admin = strcmp(text, "off") != 0;
	if (o->has_admin && !listen_spec_parse(text, &o->admin, &why))
		return usage_error("--admin", why);
	return OPTIONS_RUN;
}

static enum options_action set_sandbox(struct options *o, const char *text)
{
	o->sandbox = text;
	return sandbox_id_is_good(slice_str(text)) ? OPTIONS_RUN : usage_error("--sandbox", "expected " SANDBOX_ID);
}

static enum options_action take_option(struct options *o, int opt, const char *arg, enum options_action *then)
{
	switch (opt) {
	case OPT_POLICY:
		o->policy = arg;
		return OPTIONS_RUN;
	case OPT_LISTEN:
		return add_listen(o, arg);
	case OPT_UPSTREAM:
		return add_upstream(o, arg);
	case OPT_BINDINGS:
		return set_bindings(o, arg);
	case OPT_ADMIN:
		return set_admin(o, arg);
	case OPT_CA_DIR:
		o->ca_dir = arg;
		return OPTIONS_RUN;
	case OPT_LOG:
		o->log = arg;
		return OPTIONS_RUN;
	case OPT_SANDBOX:
		return set_sandbox(o, arg);
	case OPT_CHECK:
		*then = OPTIONS_CHECK;
		return OPTIONS_RUN;
	case OPT_VERSION:
		puts("cage-dns " CAGE_VERSION);
		return OPTIONS_EXIT_OK;
	case 'h':
	case OPT_HELP:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	default:
		say("--help lists all options");
		return OPTIONS_EXIT_USAGE;
	}
}

enum options_action options_parse(int argc, char **argv, struct options *out)
{
	enum options_action then = OPTIONS_RUN;
	int opt;
	*out = (struct options){.log = "-", .sandbox = "default"};
	if (set_admin(out, "127.0.0.1:8082") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	while ((opt = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		enum options_action next = take_option(out, opt, optarg, &then);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind < argc)
		return usage_error(argv[optind], "is not an option");
	if (!out->policy)
		return usage_error("--policy", "is required: cage answers nothing without a policy");
	if (out->n_listen == 0 && add_listen(out, "127.0.0.1:5300") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	return then;
}
