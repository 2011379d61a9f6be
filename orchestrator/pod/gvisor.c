/* The agent's container where runsc runs it, the runtime of gVisor: a kernel of its own between the agent and that of this machine.
 * runsc gives a container no descriptors but the first three (door.h), which are those of the podman command that makes its first
 * process; and it does not set what `--sysctl` says, but copies the network as it is when the container starts. So there are three
 * commands, and IPv6 is turned off before the last one:
 *
 *	CONTAINER_CREATING   podman create
 *	CONTAINER_PREPARING  podman init: its network and first process are there, no program runs
 *	CONTAINER_STARTING   podman start: cage-door waits for its words, as it does everywhere */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

bool gvisor_runs(const struct pod_options *o, enum role role)
{
	const char *slash = o->runtime ? strrchr(o->runtime, '/') : NULL;
	return role == ROLE_AGENT && o->runtime && strncmp(slash ? slash + 1 : o->runtime, "runsc", 5) == 0;
}

/* What counts is what the kernel of this machine sees: threads of gVisor, some of them for each process of the agent. 0: any. */
uint64_t gvisor_pids(uint64_t pids)
{
	return pids ? LIMIT_POD_GVISOR_PIDS + pids * LIMIT_POD_GVISOR_EACH : 0;
}

static void add_name(const struct pod *p, struct words *argv)
{
	char name[LIMIT_POD_NAME];
	pod_container_name(p, ROLE_AGENT, name);
	words_add(argv, "%s", name);
}

bool gvisor_begin(struct pod *p)
{
	struct container *c = &p->containers[ROLE_AGENT];
	struct words argv = {0};
	char seccomp[RUNDIR_PATH + 16];
	snprintf(seccomp, sizeof(seccomp), "%s/gvisor.json", p->dir.hidden);
	bool ok = seccomp_write(seccomp, SECCOMP_OF_GVISOR) && lines_of(p, ROLE_AGENT, &argv, 0) &&
		  call_begin(&c->call, p->options, &argv, NULL, 0);
	words_free(&argv);
	if (ok)
		container_enter(c, CONTAINER_CREATING);
	return ok;
}

/* The keeper's link, which is our stdin, and two pipes. What podman prints has nowhere to go: stdout is one that can be read only. */
static bool begin_prepare(struct pod *p, struct container *c)
{
	struct words argv = {0};
	int words[2] = {-1, -1}, said[2] = {-1, -1};
	bool ok =
		pipe2(words, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0 && fcntl(said[0], F_SETFL, O_NONBLOCK) == 0;
	const int streams[3] = {0, words[0], said[1]};
	call_words(p->options, &argv);
	words_add(&argv, "--runtime-flag=oci-seccomp"); /* else the filter of system calls does not count */
	words_add(&argv, "init");
	add_name(p, &argv);
	ok = ok && call_begin_with(&c->call, p->options, &argv, streams);
	for (int i = 1; i < 3; i++)
		if (streams[i] >= 0)
			close(streams[i]);
	words_free(&argv);
	start_listening(c, ROLE_AGENT, words[1], said[0], -1);
	container_enter(c, CONTAINER_PREPARING);
	return ok;
}

/* ---- IPv6 ---- */

static bool write_one(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "1", 1) == 1;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* /proc/sys/net is that of the network which we are in. */
static bool turn_off_ipv6(const struct pod *p)
{
	(void)p;
	return write_one("/proc/sys/net/ipv6/conf/all/disable_ipv6") &&
	       write_one("/proc/sys/net/ipv6/conf/default/disable_ipv6");
}

static bool close_ipv6(const struct pod *p, const struct container *c)
{
	if (network_within(c->pidfd, turn_off_ipv6, p))
		return true;
	say("IPv6 can't be turned off in the agent's network: %s", strerror(errno));
	return false;
}

/* ---- the first process ---- */

static bool read_id(const struct pod *p, char id[POD_IMAGE_ID])
{
	char path[RUNDIR_PATH + 16];
	snprintf(path, sizeof(path), "%s/agent.id", p->dir.hidden);
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(id, POD_IMAGE_ID, f);
	if (!ok)
		say("%s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	return ok;
}

static bool begin_start(struct pod *p, struct container *c)
{
	struct words argv = {0};
	char id[POD_IMAGE_ID];
	if (!read_id(p, id) || !start_found(p, ROLE_AGENT, id) || !close_ipv6(p, c))
		return false;
	call_words(p->options, &argv);
	words_add(&argv, "start");
	add_name(p, &argv);
	container_enter(c, CONTAINER_STARTING);
	return call_begin(&c->call, p->options, &argv, NULL, 0);
}

/* After a command that was good. */
bool gvisor_go_on(struct pod *p)
{
	struct container *c = &p->containers[ROLE_AGENT];
	return c->state == CONTAINER_CREATING ? begin_prepare(p, c) : begin_start(p, c);
}
