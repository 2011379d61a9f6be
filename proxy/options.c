/* Parsing of the command line, and the help text that describes it. */
#include "proxy/options.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/slice.h"

static const char help_text[] =
	"usage: cage-proxy --policy FILE [options]\n"
	"\n"
	"A TLS-intercepting forward proxy that lets out only what the policy allows\n"
	"and writes one JSON line about each decision.\n"
	"\n"
	"  --policy FILE      the policy (docs/policy.md); required\n"
	"  --listen WHERE     where clients connect: ADDR:PORT, unix:PATH or fd:N; link:ADDR:PORT\n"
	"                     is heard by none but the interface that has the address;\n"
	"                     may be repeated (default 127.0.0.1:8080, unless --socks or\n"
	"                     --transparent is given; port 0 picks one)\n"
	"  --socks WHERE      the same for clients that speak SOCKS5\n"
	"  --transparent WHERE  ADDR:PORT or fd:N: the same for connections that a firewall\n"
	"                     or router leads here (docs/operations.md)\n"
	"  --admin WHERE      ADDR:PORT, unix:PATH or off (default 127.0.0.1:8081):\n"
	"                     /healthz /readyz /metrics /ca.pem\n"
	"  --ca-dir DIR       ca.pem, ca.key and bundle.pem; made when absent (default\n"
	"                     /var/lib/cage for root, else $XDG_STATE_HOME/cage or\n"
	"                     ~/.local/state/cage)\n"
	"  --keys DIR         placeholder.key and fingerprint.key, 32 bytes each, where they are not\n"
	"                     to be made in the CA directory\n"
	"  --log FILE         the decision log (docs/log.md); - is stdout (default -)\n"
	"  --log-max BYTES    no more than that in FILE, and no traffic from then on\n"
	"  --workers N        worker processes, 1 to 64 (default 1)\n"
	"  --sandbox ID       written into each log line (default \"default\")\n"
	"  --auth FILE        lines SANDBOX:TOKEN; clients must send one of them as\n"
	"                     Proxy-Authorization, or as user and password of SOCKS5,\n"
	"                     which says which sandbox they are\n"
	"  --sandboxes DIR    the same from a directory, with a policy for each: DIR/SANDBOX/token\n"
	"                     and DIR/SANDBOX/policy.yaml; without the latter, --policy holds\n"
	"  --bindings unix:PATH  where cage-dns tells what it has answered (its own option of the\n"
	"                     same name): a name that it answered is connected to there; with\n"
	"                     upstream.bound of the policy nothing else is\n"
	"  --resolver WHERE   ADDR or ADDR:PORT, asked for names in the place of the system's\n"
	"                     resolvers (resolv.conf), where the policy does not name others\n"
	"  --never ADDR:PORT  never connected to, as our own listeners are not, whatever a policy says;\n"
	"                     may be repeated (cage-gateway)\n"
	"  --watch fd:N       a packet socket that sees attempts to get past the proxy, which are\n"
	"                     logged then (cage run)\n"
	"  --reloads fd:N     a pipe that gets a byte for each time that the policy is loaded again:\n"
	"                     y, or n where the old one stays (cage run). With --sandboxes a line: y or n,\n"
	"                     the ids that were refused, and ? where that can't be said of all of them\n"
	"  --tools WHERE      unix:PATH or fd:N: where tool calls of the sandbox are told, to be\n"
	"                     logged (cage serve)\n"
	"  --out BYTES        all that may be sent to servers while this runs; then requests are\n"
	"                     refused (limit.budget)\n"
	"  --vault-variables  what the policy has in key vaults was read by the platform: no vault is\n"
	"                     asked, and the value of the Nth secret is in CAGE_VAULT_N, from 0 on\n"
	"  --kit DIR          ca.pem and env.sh, which http://cage.internal/ gives to clients\n"
	"  --check            load the policy, run its tests, look at its secrets, and exit; its pins may\n"
	"                     lead to none of the listeners and --never that are given with it\n"
	"  --print-env        print NAME=PLACEHOLDER for each secret of the policy, as the\n"
	"                     environment of the sandbox --sandbox needs it, and exit\n"
	"  --version          print the version and exit\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Signals: SIGHUP loads the policy again, and what has changed of the sandboxes (a bad policy is\n"
	"reported and the old one stays),\n"
	"SIGUSR1 opens the log anew, SIGTERM stops: idle connections at once, busy ones get 10 s.\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage or wrong policy.\n";

enum {
	OPT_POLICY = 1,
	OPT_LISTEN,
	OPT_ADMIN,
	OPT_CA_DIR,
	OPT_LOG,
	OPT_LOG_MAX,
	OPT_WORKERS,
	OPT_SANDBOX,
	OPT_AUTH,
	OPT_CHECK,
	OPT_PRINT_ENV,
	OPT_VERSION,
	OPT_HELP,
	OPT_TRANSPARENT,
	OPT_SOCKS,
	OPT_BINDINGS,
	OPT_WATCH,
	OPT_KIT,
	OPT_TOOLS,
	OPT_OUT,
	OPT_RELOADS,
	OPT_KEYS,
	OPT_SANDBOXES,
	OPT_RESOLVER,
	OPT_VAULT_VARIABLES,
	OPT_NEVER
};

static const struct option long_options[] = {
	{"policy", required_argument, NULL, OPT_POLICY},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"admin", required_argument, NULL, OPT_ADMIN},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"log", required_argument, NULL, OPT_LOG},
	{"log-max", required_argument, NULL, OPT_LOG_MAX},
	{"workers", required_argument, NULL, OPT_WORKERS},
	{"sandbox", required_argument, NULL, OPT_SANDBOX},
	{"auth", required_argument, NULL, OPT_AUTH},
	{"check", no_argument, NULL, OPT_CHECK},
	{"print-env", no_argument, NULL, OPT_PRINT_ENV},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{"transparent", required_argument, NULL, OPT_TRANSPARENT},
	{"socks", required_argument, NULL, OPT_SOCKS},
	{"bindings", required_argument, NULL, OPT_BINDINGS},
	{"watch", required_argument, NULL, OPT_WATCH},
	{"kit", required_argument, NULL, OPT_KIT},
	{"tools", required_argument, NULL, OPT_TOOLS},
	{"out", required_argument, NULL, OPT_OUT},
	{"reloads", required_argument, NULL, OPT_RELOADS},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"sandboxes", required_argument, NULL, OPT_SANDBOXES},
	{"resolver", required_argument, NULL, OPT_RESOLVER},
	{"vault-variables", no_argument, NULL, OPT_VAULT_VARIABLES},
	{"never", required_argument, NULL, OPT_NEVER},
	{NULL, 0, NULL, 0},
};

static enum options_action add_listen(struct options *o, const char *option, enum entrance entrance, const char *text)
{
	size_t at = o->n_listen;
	enum options_action done =
		options_add_listener(option, text, entrance != ENTRANCE_CAPTURED, o->listen, &o->n_listen);
	if (done == OPTIONS_RUN)
		o->entrances[at] = entrance;
	return done;
}

static enum options_action set_bindings(struct options *o, const char *text)
{
	struct listen_spec spec;
	enum options_action done = options_read_bindings(text, &spec);
	if (done == OPTIONS_RUN)
		memcpy(o->bindings, spec.path, sizeof(o->bindings));
	return done;
}

static enum options_action add_tools(struct options *o, const char *text)
{
	if (strncmp(text, "unix:", 5) != 0 && strncmp(text, "fd:", 3) != 0)
		return options_usage_error("--tools", "expected unix:PATH or fd:N");
	return add_listen(o, "--tools", ENTRANCE_TOOLS, text);
}

static enum options_action set_out(struct options *o, const char *text)
{
	if (!slice_to_u64(slice_str(text), LIMIT_LEDGER_SPEND, &o->out))
		return options_usage_error("--out", "expected a number of bytes, at most 1 TiB");
	o->has_out = true;
	return OPTIONS_RUN;
}

static enum options_action add_never(struct options *o, const char *text)
{
	struct listen_spec spec;
	const char *why;
	if (!listen_spec_parse(text, &spec, &why) || spec.kind != LISTEN_TCP || spec.at.port == 0)
		return options_usage_error("--never", "expected ADDRESS:PORT or [IPV6]:PORT");
	if (o->n_never == LIMIT_NEVER)
		return options_usage_error("--never", "there are too many of them");
	o->never[o->n_never++] = spec.at;
	return OPTIONS_RUN;
}

static enum options_action set_workers(struct options *o, const char *text)
{
	uint64_t n = 0;
	if (!slice_to_u64(slice_str(text), LIMIT_WORKERS, &n) || n == 0)
		return options_usage_error("--workers", "expected a number from 1 to 64");
	o->workers = (unsigned)n;
	return OPTIONS_RUN;
}

static enum options_action take_option(void *arg, int opt, const char *value)
{
	struct options *o = arg;
	switch (opt) {
	case OPT_POLICY:
		o->policy = value;
		return OPTIONS_RUN;
	case OPT_LISTEN:
		return add_listen(o, "--listen", ENTRANCE_PROXY, value);
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
		return options_read_log_max(value, &o->log_max);
	case OPT_WORKERS:
		return set_workers(o, value);
	case OPT_SANDBOX:
		return options_read_sandbox(value, &o->sandbox);
	case OPT_AUTH:
		o->auth = value;
		return OPTIONS_RUN;
	case OPT_SANDBOXES:
		o->sandboxes = value;
		return OPTIONS_RUN;
	case OPT_CHECK:
		return OPTIONS_CHECK;
	case OPT_PRINT_ENV:
		return OPTIONS_PRINT_ENV;
	case OPT_VERSION:
		puts("cage-proxy " CAGE_VERSION);
		return OPTIONS_EXIT_OK;
	case 'h':
	case OPT_HELP:
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	case OPT_TRANSPARENT:
		return add_listen(o, "--transparent", ENTRANCE_CAPTURED, value);
	case OPT_SOCKS:
		return add_listen(o, "--socks", ENTRANCE_SOCKS, value);
	case OPT_BINDINGS:
		return set_bindings(o, value);
	case OPT_WATCH:
		return options_read_descriptor("--watch", value, &o->watch);
	case OPT_RELOADS:
		return options_read_descriptor("--reloads", value, &o->reloads);
	case OPT_TOOLS:
		return add_tools(o, value);
	case OPT_VAULT_VARIABLES:
		o->vault_variables = true;
		return OPTIONS_RUN;
	case OPT_RESOLVER:
		return options_read_resolver(value);
	case OPT_NEVER:
		return add_never(o, value);
	case OPT_OUT:
		return set_out(o, value);
	case OPT_KIT:
		o->kit = value;
		return OPTIONS_RUN;
	default:
		return OPTIONS_EXIT_USAGE;
	}
}

static bool takes_captured(const struct options *o)
{
	for (size_t i = 0; i < o->n_listen; i++)
		if (o->entrances[i] == ENTRANCE_CAPTURED)
			return true;
	return false;
}

enum options_action options_parse(int argc, char **argv, struct options *out)
{
	*out = (struct options){.log = "-", .sandbox = "default", .workers = 1, .watch = -1, .reloads = -1};
	if (take_option(out, OPT_ADMIN, "127.0.0.1:8081") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	enum options_action then = options_read(argc, argv, long_options, take_option, out);
	if (then == OPTIONS_EXIT_OK || then == OPTIONS_EXIT_USAGE)
		return then;
	if (!out->policy)
		return options_usage_error("--policy", "is required: cage lets nothing out without a policy");
	/* who checks a policy may run it elsewhere: its pins are compared with the listeners that were given */
	if (out->n_listen == 0 && then != OPTIONS_CHECK &&
	    take_option(out, OPT_LISTEN, "127.0.0.1:8080") != OPTIONS_RUN)
		return OPTIONS_EXIT_USAGE;
	if (out->auth && out->sandboxes)
		return options_usage_error("--sandboxes", "not with --auth: it has the tokens of all");
	if ((out->auth || out->sandboxes) && takes_captured(out))
		return options_usage_error(
			"--transparent",
			"not with --auth or --sandboxes: a captured client can't show which sandbox it is");
	return then;
}
