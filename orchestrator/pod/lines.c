/* The command lines of the containers. No value of a secret or variable is in them, nor in what Podman keeps of them. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/say.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/pod/door/door.h"
#include "orchestrator/pod/pod.h"

#define DOOR "/run/cage/door"
#define FILES 4096 /* descriptors of a process, unless a limit says otherwise */
#define LEAST_FILES 1024
#define PROCESSES 16384 /* of a user */

static void add(struct words *w, const char *option, const char *value)
{
	words_add(w, "%s", option);
	words_add(w, "%s", value);
}

/* ---- what all of them have ---- */

static void add_door(const struct pod *p, struct words *w)
{
	words_add(w, "--volume");
	words_add(w, "%s/door:" DOOR ":ro", p->dir.hidden);
	add(w, "--entrypoint", DOOR);
}

static void add_names(const struct pod *p, enum role role, struct words *w)
{
	char name[LIMIT_POD_NAME], pidfile[POD_PATH];
	pod_container_name(p, role, name);
	pod_pidfile(p, role, pidfile);
	add(w, "--name", name);
	add(w, "--pidfile", pidfile);
	words_add(w, "--label");
	words_add(w, POD_LABEL_ID "=%s", p->options->run.sandbox);
	words_add(w, "--label");
	words_add(w, POD_LABEL_STATE "=%s", p->options->state);
}

/* An image is there already, or nothing is run: what is downloaded while somebody waits is not what was looked at. */
static void add_closed(const struct pod *p, enum role role, struct words *w)
{
	static const char *const words[] = {
		"--pull=never",
		"--read-only",
		"--read-only-tmpfs=false",
		"--cap-drop=all",
		"--security-opt=no-new-privileges",
		"--security-opt=mask=/proc/locks", /* it shows those of all sandboxes, with numbers of their choice */
		"--http-proxy=false",
		"--no-hosts",
		"--no-healthcheck",
		"--init=false",
		"--image-volume=ignore", /* a disk without a bound */
		"--ipc=private",
		"--restart=no",
		"--ulimit=core=0:0"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words_add(w, "%s", words[i]);
	if (!gvisor_runs(p->options, role)) /* podman create does not know it, and sees that there is one */
		words_add(w, "--passwd=false");
	words_add(w, "--security-opt=seccomp=%s/%s.json", p->dir.hidden,
		  gvisor_runs(p->options, role) ? "gvisor" : "seccomp");
}

static void add_user(const struct pod *p, enum role role, struct words *w)
{
	const unsigned uid = pod_uid(p, role);
	words_add(w, "--user=%u:%u", uid, uid);
}

/* Explicit, since Podman's own are above what a machine may allow; and never more than we have. */
static void add_ulimit(struct words *w, const char *name, __rlimit_resource_t resource, uint64_t wanted)
{
	struct rlimit own = {0};
	uint64_t n = getrlimit(resource, &own) == 0 && own.rlim_max < wanted ? own.rlim_max : wanted;
	words_add(w, "--ulimit=%s=%" PRIu64 ":%" PRIu64, name, n, n);
}

static void add_limits(struct words *w, const struct room_limits *l)
{
	add_ulimit(w, "nofile", RLIMIT_NOFILE, l->files ? l->files : FILES);
	add_ulimit(w, "nproc", RLIMIT_NPROC, PROCESSES);
	if (l->fsize)
		add_ulimit(w, "fsize", RLIMIT_FSIZE, l->fsize);
	if (l->mem) {
		words_add(w, "--memory=%" PRIu64 "b", l->mem);
		words_add(w, "--memory-swap=%" PRIu64 "b", l->mem);
	}
	if (l->cpu)
		words_add(w, "--cpus=%" PRIu64 ".%03" PRIu64, l->cpu / 1000, l->cpu % 1000);
	if (l->pids)
		words_add(w, "--pids-limit=%" PRIu64, l->pids);
}

static void add_root(struct words *w, const char *image)
{
	if (image[0] == '/') {
		words_add(w, "--rootfs");
		words_add(w, "%s:O", image); /* what is written for mounts is written beside it */
	} else {
		words_add(w, "%s", image);
	}
}

/* ---- helpers ---- */

static void add_helper(const struct pod *p, struct words *w, const char *log)
{
	static const struct room_limits limits = {.mem = LIMIT_POD_HELPER_MEM, .pids = LIMIT_POD_HELPER_PIDS};
	add_limits(w, &limits);
	add_user(p, ROLE_PROXY, w);
	words_add(w, "--workdir=/"); /* that of its image is another user's */
	words_add(w, "--volume=%s/policy:/run/cage/policy:ro", p->dir.hidden);
	words_add(w, "--volume=%s/bindings:/run/cage/bindings:U", p->dir.hidden);
	words_add(w, "--volume=%s:/run/cage/log.jsonl", log);
	add(w, "--tmpfs", "/tmp:rw,size=16m,mode=1777");
}

static void add_helper_command(const struct pod *p, struct words *w, const char *program, int port)
{
	char address[INET_ADDRSTRLEN];
	struct in_addr at = pod_address(p, ROLE_PROXY);
	inet_ntop(AF_INET, &at, address, sizeof(address));
	words_add(w, "helper");
	words_add(w, "%s", program);
	add(w, "--policy", "/run/cage/policy/policy.yaml");
	add(w, "--admin", "off");
	add(w, "--ca-dir", "/run/cage/keys");
	add(w, "--log", "/run/cage/log.jsonl");
	if (p->options->run.log_max)
		add(w, "--log-max", p->options->run.log_max);
	add(w, "--sandbox", p->options->run.sandbox);
	add(w, "--bindings", "unix:/run/cage/bindings/socket");
	words_add(w, "--listen"); /* who is in the network that leads out could have it otherwise */
	words_add(w, "link:%s:%d", address, port);
}

/* Nothing is passed on between its two networks. */
static void add_proxy(const struct pod *p, struct words *w)
{
	char network[LIMIT_POD_NAME], address[INET_ADDRSTRLEN];
	struct in_addr at = pod_address(p, ROLE_PROXY);
	pod_network_name(p, network);
	inet_ntop(AF_INET, &at, address, sizeof(address));
	words_add(w, "--network=%s:ip=%s", network, address);
	words_add(w, "--network=%s", p->options->network);
	add(w, "--sysctl", "net.ipv4.ip_forward=0");
	add(w, "--sysctl", "net.ipv4.ip_unprivileged_port_start=53");
	add_helper(p, w, p->log);
	words_add(w, "--volume=%s:/run/cage/keys:U", p->ca_dir);
	words_add(w, "--volume=%s:/run/cage/kit:ro", p->dir.kit);
	add_root(w, p->options->proxy_image);
	add_helper_command(p, w, "cage-proxy", 8080);
	add(w, "--kit", "/run/cage/kit");
	for (size_t i = 0; i + 1 < p->options->run.proxy.n; i += 2)
		if (strcmp(p->options->run.proxy.list[i], "--out") == 0)
			add(w, "--out", p->options->run.proxy.list[i + 1]);
	words_add(w, "--socks");
	words_add(w, "fd:%d", DOOR_FIRST);
	words_add(w, "--tools");
	words_add(w, "fd:%d", DOOR_FIRST + 1);
	words_add(w, "--reloads");
	words_add(w, "fd:%d", DOOR_FIRST + 2);
}

static void add_dns(const struct pod *p, struct words *w)
{
	char proxy[LIMIT_POD_NAME];
	pod_container_name(p, ROLE_PROXY, proxy);
	words_add(w, "--network=container:%s", proxy);
	add_helper(p, w, p->dns_log);
	words_add(w, "--volume=%s/keys:/run/cage/keys:U", p->dir.hidden);
	add_root(w, p->options->dns_image);
	add_helper_command(p, w, "cage-dns", 53);
	words_add(w, "--reloads");
	words_add(w, "fd:%d", DOOR_FIRST);
}

/* ---- the agent ---- */

static void add_kit(const struct pod *p, struct words *w)
{
	words_add(w, "--volume=%s:%s:ro", p->dir.kit, p->dir.kit);
	for (const char *const *bundle = kit_system_bundles; *bundle; bundle++)
		words_add(w, "--volume=%s/bundle.pem:%s:ro", p->dir.kit, *bundle);
	for (const char *const *store = kit_java_stores; *store; store++)
		words_add(w, "--volume=%s/cacerts.jks:%s:ro", p->dir.kit, *store);
}

/* Of a file by itself a copy is shown. */
static void add_shown(const struct pod *p, struct words *w)
{
	const struct words *room = &p->options->run.room;
	char path[POD_PATH];
	for (size_t i = 0; i + 1 < room->n; i += 2) {
		const char *what = room->list[i + 1];
		if (strcmp(room->list[i], "--bind-ro") != 0)
			continue;
		const char *place = what[strcspn(what, ":")] ? strchr(what, ':') + 1 : what;
		if (files_shown(p, i + 1, path))
			words_add(w, "--volume=%s:%s:ro", path, place);
		else
			words_add(w, "--volume=%.*s:%s:ro", (int)strcspn(what, ":"), what, place);
	}
}

static void add_agent_network(const struct pod *p, struct words *w)
{
	char network[LIMIT_POD_NAME], own[INET_ADDRSTRLEN], helpers[INET_ADDRSTRLEN];
	struct in_addr at = pod_address(p, ROLE_AGENT), to = pod_address(p, ROLE_PROXY);
	pod_network_name(p, network);
	inet_ntop(AF_INET, &at, own, sizeof(own));
	inet_ntop(AF_INET, &to, helpers, sizeof(helpers));
	words_add(w, "--network=%s:ip=%s", network, own);
	words_add(w, "--dns=%s", helpers);
	words_add(w, "--dns-search=.");
	/* This machine has an address of the link on each bridge. */
	add(w, "--sysctl", "net.ipv6.conf.all.disable_ipv6=1");
	add(w, "--sysctl", "net.ipv6.conf.default.disable_ipv6=1");
}

static void add_agent_command(const struct pod *p, struct words *w)
{
	char first[INET_ADDRSTRLEN], own[INET_ADDRSTRLEN], helpers[INET_ADDRSTRLEN];
	struct in_addr at = pod_address(p, ROLE_AGENT), to = pod_address(p, ROLE_PROXY);
	inet_ntop(AF_INET, &p->subnet, first, sizeof(first));
	inet_ntop(AF_INET, &at, own, sizeof(own));
	inet_ntop(AF_INET, &to, helpers, sizeof(helpers));
	words_add(w, gvisor_runs(p->options, ROLE_AGENT) ? "stdio-agent" : "agent");
	words_add(w, "%s/29", first);
	words_add(w, "%s", own);
	words_add(w, "%s", helpers);
	for (char **word = p->options->run.command; *word; word++)
		words_add(w, "%s", *word);
}

/* Descriptors of one process: all of them together have a bound too, as far as that leaves enough for each. */
static uint64_t files_of(uint64_t pids)
{
	const uint64_t n = pids ? LIMIT_POD_FILES / pids : FILES;
	return n > FILES ? FILES : n < LEAST_FILES ? LEAST_FILES : n;
}

static bool add_agent(const struct pod *p, struct words *w)
{
	const struct words *room = &p->options->run.room;
	const char *root = words_option(room, "--root"), *workdir = words_option(room, "--workdir");
	struct room_limits limits = p->limits;
	if (!limits.files)
		limits.files = files_of(limits.pids);
	if (gvisor_runs(p->options, ROLE_AGENT))
		limits.pids = gvisor_pids(limits.pids);
	if (p->admitted[0])
		root = p->admitted;
	if (!root && !p->options->image) {
		say("there is neither an image nor a root for the agent");
		return false;
	}
	add_agent_network(p, w);
	add_limits(w, &limits);
	add_user(p, ROLE_AGENT, w);
	words_add(w, "--hostname=cage");
	words_add(w, "--tmpfs=" POD_WORKSPACE ":rw,size=%" PRIu64 ",mode=0755,U", p->disk);
	words_add(w, "--tmpfs=" POD_HOME ":rw,size=%lu,mode=0700,U", LIMIT_POD_SCRATCH);
	words_add(w, "--tmpfs=/tmp:rw,size=%lu,mode=1777", LIMIT_POD_SCRATCH);
	words_add(w, "--volume=%s/hosts:/etc/hosts:ro", p->dir.hidden);
	words_add(w, "--volume=%s/passwd:/etc/passwd:ro", p->dir.hidden);
	words_add(w, "--volume=%s/group:/etc/group:ro", p->dir.hidden);
	words_add(w, "--workdir=%s", workdir ? workdir : POD_WORKSPACE);
	add_kit(p, w);
	add_shown(p, w);
	add_root(w, root ? root : p->options->image);
	add_agent_command(p, w);
	return true;
}

/* Helpers are ours: what is not trusted is the agent, and it alone is gVisor's. */
static void add_begin(const struct pod *p, enum role role, struct words *w, size_t n_fds)
{
	const struct pod_options *o = p->options;
	if (gvisor_runs(o, role)) {
		call_words(o, w);
		words_add(w, "create");
		words_add(w, "--interactive");
		words_add(w, "--log-driver=passthrough");
		words_add(w, "--cidfile=%s/agent.id", p->dir.hidden); /* it is not printed then */
		return;
	}
	call_words_with(o, gvisor_runs(o, ROLE_AGENT) ? NULL : o->runtime, w);
	words_add(w, "run");
	words_add(w, "--detach");
	words_add(w, "--preserve-fds=%zu", n_fds);
	words_add(w, "--log-driver=none");
}

bool lines_of(const struct pod *p, enum role role, struct words *argv, size_t n_fds)
{
	bool ok = true;
	add_begin(p, role, argv, n_fds);
	add_names(p, role, argv);
	add_closed(p, role, argv);
	add_door(p, argv);
	switch (role) {
	case ROLE_PROXY:
		add_proxy(p, argv);
		break;
	case ROLE_DNS:
		add_dns(p, argv);
		break;
	case ROLE_AGENT:
		ok = add_agent(p, argv);
		break;
	case ROLES:
		return false;
	}
	return ok && !argv->failed;
}
