/* Counters of the kernel: of a cgroup of version 2 or 1, or of the children that were waited for. */
#include "orchestrator/gate/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The number that the file is; 0 where there is none. */
static uint64_t number_in(const char *dir, const char *file)
{
	char path[CGROUP_PATH + 64], line[64];
	uint64_t n = 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f))
		n = strtoull(line, NULL, 10);
	fclose(f);
	return n;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

/* All that have ended were waited for: in the room by its first process, which is our child. Their peak is that of the largest
 * of them alone. */
static void measure_children(struct handoff_usage *out)
{
	struct rusage r;
	if (getrusage(RUSAGE_CHILDREN, &r) != 0)
		return;
	out->cpu_us = microseconds(r.ru_utime) + microseconds(r.ru_stime);
	out->memory_peak = (uint64_t)r.ru_maxrss * 1024;
}

void measure(const struct cgroup *cgroup, struct handoff_usage *out)
{
	const struct cgroup_events events = cgroup_events(cgroup);
	uint64_t peak = 0;
	*out = (struct handoff_usage){.killed = events.killed, .refused = events.refused};
	measure_children(out);
	for (size_t i = 0; i < cgroup->n; i++) {
		const char *dir = cgroup->dirs[i];
		out->cpu_us = larger(out->cpu_us, cgroup_count(dir, "cpu.stat", "usage_usec")); /* version 2 */
		peak = larger(peak, number_in(dir, "memory.peak"));                             /* 2 */
		peak = larger(peak, number_in(dir, "memory.max_usage_in_bytes"));               /* 1 */
	}
	if (peak > 0)
		out->memory_peak = peak;
}
