/* Parsing of the command line, and the help text that describes it. */
#include "dns/options.h"

#include <stdio.h>
#include <string.h>

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
	"  --resolver WHERE   ADDR or ADDR:PORT, in the place of the system's resolvers\n"
	"                     (resolv.conf), where neither of these names others\n"
	"  --bindings unix:PATH  where cage-proxy (its own option of the same name) is told\n"
	"                     what was answered\n"
	"  --admin WHERE      ADDR:PORT, unix:PATH or off (default 127.0.0.1:8082):\n"
	"                     /healthz /readyz /metrics\n"
	"  --ca-dir DIR       where fingerprint.key is, the same as cage-proxy's; made when\n"
	"                     absent (default /var/lib/cage for root, else\n"
	"                     $XDG_STATE_HOME/cage or ~/.local/state/cage)\n"
	"  --keys DIR         where fingerprint.key is, if it is not to be made in the CA directory\n"
	"  --log FILE         the decision log (docs/log.md); - is stdout (default -)\n"
	"  --log-max BYTES    no more than that in FILE, and no traffic from then on\n"
	"  --log-turn BYTES   no more than that in FILE: it is renamed to FILE.old, in the\n"
	"                     place of the one before, and another one is begun\n"
	"  --sandbox ID       written into each log line (default \"default\")\n"
	"  --reloads fd:N     a pipe that gets a byte for each time that the policy is loaded again:\n"
	"                     y, or n where the old one stays (cage run)\n"
	"  --check            load the policy, run its tests, and exit\n"
	"  --version          print the version and exit\n"
	"  -h, --help         print this and exit\n"
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
	OPT_LOG_MAX,
	OPT_LOG_TURN,
	OPT_SANDBOX,
	OPT_RELOADS,
	OPT_KEYS,
	OPT_CHECK,
	OPT_VERSION,
	OPT_HELP,
	OPT_RESOLVER
};

static const struct option long_options[] = {
	{"policy", required_argument, NULL, OPT_POLICY},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"upstream", required_argument, NULL, OPT_UPSTREAM},
	{"resolver", required_argument, NULL, OPT_RESOLVER},
	{"bindings", required_argument, NULL, OPT_BINDINGS},
	{"admin", required_argument, NULL, OPT_ADMIN},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"log", required_argument, NULL, OPT_LOG},
	{"log-max", required_argument, NULL, OPT_LOG_MAX},
	{"log-turn", required_argument, NULL, OPT_LOG_TURN},
	{"sandbox", required_argument, NULL, OPT_SANDBOX},
	{"reloads", required_argument, NULL, OPT_RELOADS},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"check", no_argument, NULL, OPT_CHECK},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static enum options_action add_upstream(struct options *o, const char *text)
{
	if (o->n_upstream == LIMIT_DNS_SERVERS)
		return options_usage_error("--upstream", "too many resolvers");
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
		return options_usage_error("--upstream", "expected ADDRESS, ADDRESS:PORT or tls://ADDRESS[:PORT]#NAME");
	o->n_upstream++;
	return OPTIONS_RUN;
}

static enum options_action read_log_turn(struct options *o, const char *text)
{
	o->log_turns = true;
	if (slice_to_u64(slice_str(text), LIMIT_LOG_MOST, &o->log_max) && o->log_max >= LIMIT_LOG_TURN)
		return OPTIONS_RUN;
	return options_usage_error("--log-turn", "expected a number of bytes, 1 MiB to 1 TiB");
}

static enum options_action take_option(void *arg, int opt, const char *value)
{
	struct options *o = arg;
	switch (opt) {
	case OPT_POLICY:
		o->policy = value;
		return OPTIONS_RUN;
	case OPT_LISTEN:
		return options_add_listener("--listen", value, false, o->listen, &o->n_listen);
	case OPT_RESOLVER:
		return options_read_resolver(value);
	case OPT_UPSTREAM:
		return add_upstream(o, value);
	case OPT_BINDINGS:
		o->has_bindings = true;
		return options_read_bindings(value, &o->bindings);
	case OPT_ADMIN:
		return options_read_admin(value, &o->has_admin, &o->admin);
	case OPT_CA_DIR:
		o->ca_dir = value;
		return OPTIONS_RUN;
	case OPT_KEYS:
		o->keys = value;
		return OPTIONS_RUN;
	case OPT_LOG:
		o->log = value;
		return OPTIONS_RUN;
	case OPT_LOG_MAX:
		o->log_turns = false;
		return options_read_log_max(value, &o->log_max);
	case OPT_LOG_TURN:
		return read_log_turn(o, value);
	case OPT_SANDBOX:
		return options_read_sandbox(value, &o->sandbox);
	case OPT_RELOADS:
		return options_read_descriptor("--reloads", value, &o->reloads);
	case OPT_CHECK:
		return OPTIONS_CHECK;
	case OPT_VERSION:
		puts("cage-dns " CAGE_VERSION);
		return OPTIONS_EXIT_OK;
	case 'h':
	case OPT_HELP:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	default:
		return OPTIONS_EXIT_USAGE;
	}
}

enum options_action options_parse(int argc, char **argv, struct options *out)
{
	*out = (struct options){.log = "-", .sandbox = "default", .reloads = -1};
	if (take_option(out, OPT_ADMIN, "127.0.0.1:8082") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	enum options_action then = options_read(argc, argv, long_options, take_option, out);
	if (then == OPTIONS_EXIT_OK || then == OPTIONS_EXIT_USAGE)
		return then;
	if (!out->policy)
		return options_usage_error("--policy", "is required: cage answers nothing without a policy");
	if (out->n_listen == 0 && take_option(out, OPT_LISTEN, "127.0.0.1:5300") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	return then;
}
