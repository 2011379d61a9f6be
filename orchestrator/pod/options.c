/* The command line of cage-pod: what is said of Podman, then a word, then what that word takes. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/pod/pod.h"
#include "orchestrator/pod/pool.h"

static const char help_text[] =
	"usage: cage-pod [options] run [options of cage run] -- CMD [ARGS]\n"
	"       cage-pod [options] remove ID\n"
	"       cage-pod [options] list\n"
	"       cage-pod [options] check\n"
	"\n"
	"A sandbox of Podman's containers for cage-keeper: agent, proxy and dns. It is not for people.\n"
	"\n"
	"  --podman PROGRAM       an absolute path (default /usr/bin/podman)\n"
	"  --image NAME           of the agent; an absolute path is the directory of its root\n"
	"                         (default localhost/cage/agent-base)\n"
	"  --proxy-image NAME, --dns-image NAME\n"
	"                         the same (default localhost/cage/proxy, localhost/cage/dns)\n"
	"  --admit IMAGE          of the agent, in the place of --image: REGISTRY/REPOSITORY@sha256:HEX,\n"
	"                         which the policy has to let in\n"
	"  --signatures DIR       of such images\n"
	"  --network NAME         the network that leads out (default podman)\n"
	"  --subnets NET/BITS     where networks of sandboxes are (default 10.213.0.0/16)\n"
	"  --uids FIRST           of users: each of these networks has two (default 2000000)\n"
	"  --state WORD           label of all that is made\n"
	"  --runtime R, --cgroup-manager M, --storage-driver D, --root DIR, --runroot DIR,\n"
	"  --tmpdir DIR, --network-config-dir DIR\n"
	"                         as podman has them\n"
	"  -h, --help             print this and exit\n";

static const struct option long_options[] = {
	{"podman", required_argument, NULL, 1},
	{"image", required_argument, NULL, 2},
	{"proxy-image", required_argument, NULL, 3},
	{"dns-image", required_argument, NULL, 4},
	{"network", required_argument, NULL, 5},
	{"subnets", required_argument, NULL, 6},
	{"state", required_argument, NULL, 7},
	{"runtime", required_argument, NULL, 8},
	{"cgroup-manager", required_argument, NULL, 9},
	{"storage-driver", required_argument, NULL, 10},
	{"root", required_argument, NULL, 11},
	{"runroot", required_argument, NULL, 12},
	{"tmpdir", required_argument, NULL, 13},
	{"network-config-dir", required_argument, NULL, 14},
	{"admit", required_argument, NULL, 15},
	{"signatures", required_argument, NULL, 16},
	{"uids", required_argument, NULL, 'u'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action wrong(const char *option, const char *why)
{
	say("%s: %s", option, why);
	return OPTIONS_EXIT_USAGE;
}

static enum options_action take(struct pod_options *o, int opt, const char *value)
{
	const char **const rows[] = {
		[1] = &o->podman,          [2] = &o->image,  [3] = &o->proxy_image, [4] = &o->dns_image,
		[5] = &o->network,         [7] = &o->state,  [8] = &o->runtime,     [9] = &o->cgroup_manager,
		[10] = &o->storage_driver, [11] = &o->root,  [12] = &o->runroot,    [13] = &o->tmpdir,
		[14] = &o->network_config, [15] = &o->admit, [16] = &o->signatures};
	if (opt == 'h') {
		fputs(help_text, stdout);
		return OPTIONS_EXIT_OK;
	}
	if (opt == 6)
		return pod_pool_parse(value, &o->pool, &o->pool_bits) ? OPTIONS_RUN
								      : wrong("--subnets", POD_POOL_EXPECTED);
	if (opt == 'u')
		return pod_uids_parse(value, &o->uids) ? OPTIONS_RUN : wrong("--uids", POD_UIDS_EXPECTED);
	if (value[0] == '\0' || value[0] == '-')
		return wrong("an option", "has no value, or one that podman would take for an option");
	*rows[opt] = value;
	return OPTIONS_RUN;
}

static enum options_action check(const struct pod_options *o)
{
	return o->podman[0] == '/' ? OPTIONS_RUN : wrong("--podman", "expected an absolute path");
}

enum options_action pod_options_parse(int argc, char **argv, struct pod_options *out, const char **what)
{
	char word[USAGE_WORD];
	int opt;
	*out = (struct pod_options){.podman = "/usr/bin/podman",
				    .network = "podman",
				    .state = "none",
				    .uids = 2000000,
				    .image = "localhost/cage/agent-base",
				    .proxy_image = "localhost/cage/proxy",
				    .dns_image = "localhost/cage/dns"};
	pod_pool_parse("10.213.0.0/16", &out->pool, &out->pool_bits);
	while ((opt = usage_next(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong(word, why);
		}
		enum options_action next = take(out, opt, optarg);
		if (next != OPTIONS_RUN)
			return next;
	}
	if (optind >= argc)
		return wrong("cage-pod", "expected run, remove, list or check");
	*what = argv[optind];
	int from = optind;
	enum options_action next = check(out);
	if (strcmp(*what, "run") != 0)
		return next;
	optind = 1;
	return next == OPTIONS_RUN ? run_options_parse(argc - from, argv + from, &out->run) : next;
}

void pod_options_free(struct pod_options *o)
{
	run_options_free(&o->run);
}
