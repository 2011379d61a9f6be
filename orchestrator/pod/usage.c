/* What the agent's container has used, from its cgroups: of version 1, where each kind is a tree of its own, or 2. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

/* ---- where they are ---- */

static bool has_kind(const char *kinds, const char *kind)
{
	const size_t len = strlen(kind);
	for (const char *at = kinds; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && strncmp(at, kind, len) == 0)
			return true;
	return false;
}

static void take_tree(struct pod *p, const char *kinds, const char *path)
{
	static const char *const wanted[] = {"memory", "cpuacct"};
	for (size_t i = 0; i < 2; i++)
		if (has_kind(kinds, wanted[i]))
			snprintf(p->cgroups[i], POD_PATH, "/sys/fs/cgroup/%s%s", wanted[i], path);
	if (has_kind(kinds, "pids"))
		snprintf(p->cgroup_pids, POD_PATH, "/sys/fs/cgroup/pids%s", path);
	if (kinds[0] != '\0' || access("/sys/fs/cgroup/cgroup.controllers", F_OK) != 0)
		return;
	for (size_t i = 0; i < 2; i++)
		snprintf(p->cgroups[i], POD_PATH, "/sys/fs/cgroup%s", path);
	snprintf(p->cgroup_pids, POD_PATH, "/sys/fs/cgroup%s", path);
}

/* id: of the agent's container. Lines "4:memory:/libpod_parent/libpod-ID". A process that is not in a container's is another one, whose number it has now. */
bool usage_find(struct pod *p, pid_t pid, const char *id)
{
	char path[64], line[POD_PATH];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	FILE *f = strlen(id) >= 32 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		char *kinds = strchr(line, ':'), *at = kinds ? strchr(kinds + 1, ':') : NULL;
		line[strcspn(line, "\n")] = '\0';
		if (!at || !strstr(at, id))
			continue;
		*at = '\0';
		take_tree(p, kinds + 1, at + 1);
		found = true;
	}
	if (f)
		fclose(f);
	if (!found)
		say("the agent's container has ended before its command began");
	return found;
}

/* With cgroups of version 1, buffers of TCP are counted by themselves, and have no bound unless they get one. */
bool usage_bound(const struct pod *p)
{
	char path[POD_PATH + 64];
	snprintf(path, sizeof(path), "%s/memory.kmem.tcp.limit_in_bytes", p->cgroups[0]);
	int fd = p->limits.mem > 0 && p->cgroups[0][0] ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	const bool ok = fd < 0 || dprintf(fd, "%" PRIu64, p->limits.mem) > 0;
	if (!ok)
		say("%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

/* ---- what they say ---- */

/* The number of a file, or of the line that begins with word; 0: there is none. */
static uint64_t number_in(const char *dir, const char *file, const char *word)
{
	char path[POD_PATH + 64], line[128];
	const size_t len = strlen(word);
	uint64_t n = 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = dir[0] ? fopen(path, "re") : NULL;
	while (f && n == 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, word, len) == 0 && (len == 0 || line[len] == ' '))
			n = strtoull(line + len, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static void raise_to(uint64_t *to, uint64_t n)
{
	if (n > *to)
		*to = n;
}

/* Each of them only grows; what can't be read any more is what it was. */
void usage_take(struct pod *p)
{
	struct handoff_usage *u = &p->usage;
	const char *memory = p->cgroups[0], *cpu = p->cgroups[1];
	raise_to(&u->cpu_us, number_in(cpu, "cpu.stat", "usage_usec"));
	raise_to(&u->cpu_us, number_in(cpu, "cpuacct.usage", "") / 1000);
	raise_to(&u->memory_peak, number_in(memory, "memory.peak", ""));
	raise_to(&u->memory_peak, number_in(memory, "memory.current", ""));
	raise_to(&u->memory_peak, number_in(memory, "memory.max_usage_in_bytes", ""));
	raise_to(&u->killed, number_in(memory, "memory.events", "oom_kill"));
	raise_to(&u->killed, number_in(memory, "memory.oom_control", "oom_kill"));
	raise_to(&u->refused, number_in(p->cgroup_pids, "pids.events", "max"));
}
