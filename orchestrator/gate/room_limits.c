/* Limits that each process has, and the clock. */
#include "orchestrator/gate/room_limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/cgroup.h"
#include "orchestrator/gate/say.h"

int room_limits_start_clock(const struct room_limits *limits)
{
	const struct itimerval timer = {.it_value = {.tv_sec = (time_t)limits->seconds}};
	if (limits->seconds == 0)
		return 0;
	return setitimer(ITIMER_REAL, &timer, NULL) < 0 ? say_errno("clock") : 0;
}

/* Never more than there was: who runs the gate may be limited too. */
static int lower(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) < 0)
		return -1;
	if (value < limit.rlim_max)
		limit.rlim_max = (rlim_t)value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit);
}

/* The first processors of those that we may use. The agent could undo it, which is said. */
static int use_processors(uint64_t cpu)
{
	cpu_set_t all, some;
	uint64_t wanted = (cpu + 999) / 1000;
	CPU_ZERO(&some);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return -1;
	for (size_t i = 0; i < CPU_SETSIZE && wanted > 0; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &some);
			wanted--;
		}
	return sched_setaffinity(0, sizeof(some), &some);
}

/* One more than a cgroup holds: that one refuses first, and counts what it has refused. */
static uint64_t most_processes(const struct room_limits *limits, const struct cgroup *cgroup)
{
	return limits->pids ? limits->pids + cgroup->holds_pids : LIMIT_ROOM_PIDS;
}

int room_limits_apply(const struct room_limits *limits, const struct cgroup *cgroup)
{
	if (lower(RLIMIT_CORE, 0) < 0 || lower(RLIMIT_NOFILE, limits->files ? limits->files : LIMIT_ROOM_FILES) < 0 ||
	    lower(RLIMIT_NPROC, most_processes(limits, cgroup)) < 0 ||
	    (limits->fsize && lower(RLIMIT_FSIZE, limits->fsize) < 0) ||
	    (limits->mem && !cgroup->holds_mem && lower(RLIMIT_DATA, limits->mem) < 0) ||
	    (limits->cpu && !cgroup->holds_cpu && use_processors(limits->cpu) < 0))
		return say_errno("limits");
	return 0;
}
