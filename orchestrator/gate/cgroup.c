/* A directory below our own cgroup, or for version 2 beside it: that one refuses limits below a group that has processes. */
#include "orchestrator/gate/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/room_limits.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/write.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
enum { PERIOD_US = 100000, REMOVE_TRIES = 50 };

struct setting {
	const char *file; /* NULL: none */
	char value[48];
};

/* One thing that is limited, and the files that say so in both versions: the first, and one that not all kernels have. */
struct control {
	const char *name; /* of the controller */
	struct setting v1[2], v2[2];
	bool *holds;
};

static int write_file(const char *dir, const char *name, const char *text)
{
	char path[CGROUP_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return write_text(path, text);
}

static void set(struct setting *setting, const char *file, uint64_t value)
{
	setting->file = file;
	snprintf(setting->value, sizeof(setting->value), "%" PRIu64, value);
}

/* Swap is memory too: version 1 counts both together, version 2 has a limit for each. */
static void limit_memory(struct control *c, uint64_t bytes)
{
	set(&c->v1[0], "memory.limit_in_bytes", bytes);
	set(&c->v1[1], "memory.memsw.limit_in_bytes", bytes);
	set(&c->v2[0], "memory.max", bytes);
	set(&c->v2[1], "memory.swap.max", 0);
}

static void limit_processors(struct control *c, uint64_t thousandths)
{
	const uint64_t quota = thousandths * (PERIOD_US / 1000);
	set(&c->v1[0], "cpu.cfs_quota_us", quota);
	c->v2[0].file = "cpu.max";
	snprintf(c->v2[0].value, sizeof(c->v2[0].value), "%" PRIu64 " %d", quota, PERIOD_US);
}

/* What is asked for. Returns how many. */
static size_t list_controls(struct cgroup *out, const struct room_limits *l, struct control controls[CGROUP_DIRS])
{
	size_t n = 0;
	memset(controls, 0, CGROUP_DIRS * sizeof(controls[0]));
	if (l->mem) {
		controls[n] = (struct control){.name = "memory", .holds = &out->holds_mem};
		limit_memory(&controls[n++], l->mem);
	}
	if (l->cpu) {
		controls[n] = (struct control){.name = "cpu", .holds = &out->holds_cpu};
		limit_processors(&controls[n++], l->cpu);
	}
	if (l->pids) {
		controls[n] = (struct control){.name = "pids", .holds = &out->holds_pids};
		set(&controls[n].v1[0], "pids.max", l->pids);
		set(&controls[n++].v2[0], "pids.max", l->pids);
	}
	return n;
}

static bool limit(const char *dir, const struct setting settings[2])
{
	if (write_file(dir, settings[0].file, settings[0].value) < 0)
		return false;
	return !settings[1].file || write_file(dir, settings[1].file, settings[1].value) == 0 || errno == ENOENT;
}

static bool names_controller(const char *list, const char *name)
{
	const size_t len = strlen(name);
	for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && memcmp(at, name, len) == 0)
			return true;
	return false;
}

/* Our own path in the hierarchy of a controller, or in that of version 2 for "". */
static int own_path(const char *controller, char out[CGROUP_PATH])
{
	char *line = NULL;
	size_t room = 0;
	int result = -1;
	FILE *f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return -1;
	while (result < 0 && getline(&line, &room, f) > 0) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		list++;
		if ((*controller ? names_controller(list, controller) : *list == '\0') &&
		    strlen(path) < CGROUP_PATH / 2) {
			memcpy(out, path, strlen(path) + 1);
			result = 0;
		}
	}
	free(line);
	fclose(f);
	return result;
}

/* A gate that was killed leaves its directory, and its number is given out again; in another container somebody may have the
 * same one now. */
int cgroup_make_dir(struct cgroup *out, const char *parent)
{
	char *dir = out->dirs[out->n];
	for (int i = 0; i < LIMIT_ROOM_CGROUPS; i++) {
		int n = i == 0 ? snprintf(dir, CGROUP_PATH, "%s/cage-%d", parent, (int)getpid())
			       : snprintf(dir, CGROUP_PATH, "%s/cage-%d-%d", parent, (int)getpid(), i);
		if (n >= CGROUP_PATH)
			return -1;
		if (mkdir(dir, 0755) == 0) {
			out->n++;
			return 0;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Version 1 has a hierarchy for each controller. */
static void make_v1(struct cgroup *out, const struct control *control)
{
	char path[CGROUP_PATH], parent[CGROUP_PATH];
	if (own_path(control->name, path) < 0)
		return;
	int n = snprintf(parent, sizeof(parent), CGROUP_ROOT "/%s%s", control->name,
			 strcmp(path, "/") == 0 ? "" : path);
	if (n >= (int)sizeof(parent) || cgroup_make_dir(out, parent) < 0)
		return;
	*control->holds = limit(out->dirs[out->n - 1], control->v1);
	if (!*control->holds)
		rmdir(out->dirs[--out->n]);
}

/* A group below one that has processes may be of a kind that can have none itself. */
static bool takes_processes(const char *dir)
{
	char path[CGROUP_PATH + 64], type[32] = "";
	snprintf(path, sizeof(path), "%s/cgroup.type", dir);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno == ENOENT;
	bool is_domain = fgets(type, sizeof(type), f) && strcmp(type, "domain\n") == 0;
	fclose(f);
	return is_domain;
}

/* Each controller for itself: a host may give some of them only. */
static bool limit_each(const char *dir, const struct control *controls, size_t n)
{
	bool any = false;
	for (size_t i = 0; i < n && takes_processes(dir); i++) {
		*controls[i].holds = limit(dir, controls[i].v2);
		any = any || *controls[i].holds;
	}
	return any;
}

bool cgroup_limit_v2(struct cgroup *out, const struct room_limits *limits, const char *dir)
{
	struct control controls[CGROUP_DIRS];
	return limit_each(dir, controls, list_controls(out, limits, controls));
}

static bool make_v2_below(struct cgroup *out, const char *parent, const struct control *controls, size_t n)
{
	char enable[32];
	for (size_t i = 0; i < n; i++) {
		snprintf(enable, sizeof(enable), "+%s", controls[i].name);
		write_file(parent, "cgroup.subtree_control", enable); /* whether it helped is seen below */
	}
	if (cgroup_make_dir(out, parent) < 0)
		return false;
	if (limit_each(out->dirs[out->n - 1], controls, n))
		return true;
	rmdir(out->dirs[--out->n]);
	return false;
}

/* Only that of the whole machine has no kind; the one that a container sees as its root has. */
static bool is_top(const char *dir)
{
	char path[CGROUP_PATH + 64];
	snprintf(path, sizeof(path), "%s/cgroup.type", dir);
	return access(path, F_OK) != 0;
}

/* Below the top, or beside our own, which has processes: below such a one there is no limit of memory, and one that gives out the
 * rest becomes a kind below which nobody can put a process, and stays it. A process may be moved to a group beside its own only
 * where the directory above both may be written. */
static void make_v2(struct cgroup *out, const struct control *controls, size_t n)
{
	char path[CGROUP_PATH], parent[CGROUP_PATH];
	if (own_path("", path) < 0 || path[0] != '/')
		return;
	const bool at_root = path[1] == '\0';
	*strrchr(path, '/') = '\0';
	int len = snprintf(parent, sizeof(parent), CGROUP_ROOT "%s", path);
	if (len < (int)sizeof(parent) && (!at_root || is_top(parent)))
		make_v2_below(out, parent, controls, n);
}

void cgroup_make(struct cgroup *out, const struct room_limits *limits)
{
	struct control controls[CGROUP_DIRS];
	*out = (struct cgroup){.n = 0};
	const size_t n = list_controls(out, limits, controls);
	if (n == 0)
		return;
	if (access(CGROUP_ROOT "/cgroup.controllers", F_OK) == 0)
		make_v2(out, controls, n);
	else
		for (size_t i = 0; i < n; i++)
			make_v1(out, &controls[i]);
	for (size_t i = 0; i < n; i++)
		if (!*controls[i].holds)
			say("--limit: no cgroup for %s can be made here, so that only processes by themselves are "
			    "limited",
			    controls[i].name);
}

int cgroup_add(const struct cgroup *cgroup, pid_t pid)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", (int)pid);
	for (size_t i = 0; i < cgroup->n; i++)
		if (write_file(cgroup->dirs[i], "cgroup.procs", number) < 0)
			return say_errno(cgroup->dirs[i]);
	return 0;
}

/* The last processes may need a moment to be gone. */
void cgroup_remove(struct cgroup *cgroup)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	for (size_t i = 0; i < cgroup->n; i++)
		for (int tries = 0; rmdir(cgroup->dirs[i]) < 0 && errno == EBUSY && tries < REMOVE_TRIES; tries++)
			nanosleep(&moment, NULL);
	cgroup->n = 0;
}
