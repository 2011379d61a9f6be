/* The command line of cage-pod: what is said of Podman, then a word, then what that word takes. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/option_table.h"
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
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n";

static const char *take_subnets(void *place, const char *value)
{
	struct pod_options *o = place;
	return pod_pool_parse(value, &o->pool, &o->pool_bits) ? NULL : POD_POOL_EXPECTED;
}

static const char *take_uids(void *place, const char *value)
{
	return pod_uids_parse(value, place) ? NULL : POD_UIDS_EXPECTED;
}

#define AT(field) offsetof(struct pod_options, field)

static const struct option_row rows[] = {
	{"podman", OPTION_TEXT, AT(podman), NULL},
	{"image", OPTION_TEXT, AT(image), NULL},
	{"proxy-image", OPTION_TEXT, AT(proxy_image), NULL},
	{"dns-image", OPTION_TEXT, AT(dns_image), NULL},
	{"admit", OPTION_TEXT, AT(admit), NULL},
	{"signatures", OPTION_TEXT, AT(signatures), NULL},
	{"network", OPTION_TEXT, AT(network), NULL},
	{"subnets", OPTION_TAKEN, 0, take_subnets},
	{"uids", OPTION_TAKEN, AT(uids), take_uids},
	{"state", OPTION_TEXT, AT(state), NULL},
	{"runtime", OPTION_TEXT, AT(runtime), NULL},
	{"cgroup-manager", OPTION_TEXT, AT(cgroup_manager), NULL},
	{"storage-driver", OPTION_TEXT, AT(storage_driver), NULL},
	{"root", OPTION_TEXT, AT(root), NULL},
	{"runroot", OPTION_TEXT, AT(runroot), NULL},
	{"tmpdir", OPTION_TEXT, AT(tmpdir), NULL},
	{"network-config-dir", OPTION_TEXT, AT(network_config), NULL},
};

static const struct option_table table = {.program = "cage-pod",
					  .help = help_text,
					  .more = "--help lists all options",
					  .rows = rows,
					  .n_rows = sizeof(rows) / sizeof(rows[0]),
					  .ends_at_word = true};

/* All texts become words of a command line of podman. */
static int check(const struct pod_options *o)
{
	char option[USAGE_WORD];
	for (size_t i = 0; i < table.n_rows; i++) {
		const char *value = rows[i].kind == OPTION_TEXT ? option_text(&rows[i], o) : NULL;
		snprintf(option, sizeof(option), "--%s", rows[i].name);
		if (value && (value[0] == '\0' || value[0] == '-'))
			return option_table_wrong(&table, option,
						  "has no value, or one that podman would take for an option");
	}
	return o->podman[0] == '/' ? OPTIONS_GO_ON
				   : option_table_wrong(&table, "--podman", "expected an absolute path");
}

int pod_options_parse(int argc, char **argv, struct pod_options *out, const char **what)
{
	*out = (struct pod_options){.podman = "/usr/bin/podman",
				    .network = "podman",
				    .state = "none",
				    .uids = 2000000,
				    .image = "localhost/cage/agent-base",
				    .proxy_image = "localhost/cage/proxy",
				    .dns_image = "localhost/cage/dns"};
	pod_pool_parse("10.213.0.0/16", &out->pool, &out->pool_bits);
	int code = option_table_read(&table, argc, argv, out);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind >= argc)
		return option_table_wrong(&table, "cage-pod", "expected run, remove, list or check");
	*what = argv[optind];
	const int from = optind;
	code = check(out);
	if (code != OPTIONS_GO_ON || strcmp(*what, "run") != 0)
		return code;
	optind = 1;
	return run_options_code(run_options_parse(argc - from, argv + from, &out->run));
}

void pod_options_free(struct pod_options *o)
{
	run_options_free(&o->run);
}
