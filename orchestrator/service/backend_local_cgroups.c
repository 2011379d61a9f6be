/* A gate makes a cgroup for its room beside or below its own, which is ours, and removes it at the end; one that was killed does
 * not. Such a group is known by its name; it is removed when there is no such process, and the kernel removes none that
 * has a process in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/backend.h"
#include "orchestrator/service/backend_local.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* cage-PID, or cage-PID-N where a group of that name was there already. */
static bool is_left(const char *name)
{
	uint64_t pid, n;
	struct slice rest = slice_str(name), prefix = SLICE("cage-");
	if (!slice_starts(rest, prefix))
		return false;
	rest = slice_from(rest, prefix.len);
	const bool has_more = slice_find(rest, '-') < rest.len;
	struct slice number = slice_cut(&rest, '-');
	if (!slice_to_u64(number, INT32_MAX, &pid) || pid < 2 || (has_more && !slice_to_u64(rest, INT32_MAX, &n)))
		return false;
	return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void tidy_dir(const char *path)
{
	DIR *dir = opendir(path);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		if (is_left(e->d_name) && unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR) == 0)
			say("%s/%s: is nobody's, and removed", path, e->d_name);
	if (dir)
		closedir(dir);
}

/* Version 2: below our own, and beside it. */
static void tidy_v2(const char *group)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), CGROUP_ROOT "%s", group);
	tidy_dir(path);
	char *slash = strrchr(path, '/');
	if (strcmp(group, "/") == 0 || !slash)
		return;
	*slash = '\0';
	tidy_dir(path);
}

/* Version 1 has a hierarchy for each controller. */
static void tidy_v1(struct slice controllers, const char *group)
{
	char path[BACKEND_PATH];
	while (controllers.len > 0) {
		struct slice name = slice_cut(&controllers, ',');
		snprintf(path, sizeof(path), CGROUP_ROOT "/%.*s%s", SLICE_FMT(name), group);
		tidy_dir(path);
	}
}

/* ---- can they be made? ---- */

/* As a gate does it (gate/cgroup.c): a group below that, with a file for the limit. */
static bool can_make_below(const char *parent, const char *file)
{
	char dir[BACKEND_PATH], path[BACKEND_PATH + 64];
	snprintf(dir, sizeof(dir), "%s/cage-%d", parent, (int)getpid());
	if (mkdir(dir, 0755) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	bool can = access(path, W_OK) == 0;
	rmdir(dir);
	return can;
}

static void enable_memory(const char *parent)
{
	char path[BACKEND_PATH + 32];
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", parent);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "+memory", 7) != 7)
		errno = 0; /* whether it helped is seen below */
	close(fd);
}

static bool can_make_v2(const char *parent)
{
	enable_memory(parent);
	return can_make_below(parent, "memory.max");
}

/* ---- our own groups ---- */

typedef void each_group(void *arg, struct slice controllers, const char *group);

/* "4:memory:/group", or "0::/group" of version 2. */
static void read_line(char *line, each_group *each, void *arg)
{
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (group)
		each(arg, slice_of(controllers + 1, (size_t)(group - controllers - 1)), group + 1);
}

static void each_own(each_group *each, void *arg)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && getline(&line, &room, f) > 0)
		read_line(line, each, arg);
	free(line);
	if (f)
		fclose(f);
}

static bool is_v2(void)
{
	return access(CGROUP_ROOT "/cgroup.controllers", F_OK) == 0;
}

static void tidy(void *arg, struct slice controllers, const char *group)
{
	(void)arg;
	if (controllers.len > 0)
		tidy_v1(controllers, group);
	else if (is_v2())
		tidy_v2(group);
}

void local_tidy(const char *state)
{
	(void)state;
	each_own(tidy, NULL);
}

static void try_to_make(void *arg, struct slice controllers, const char *group)
{
	bool *can = arg;
	char path[BACKEND_PATH];
	if (slice_eq(controllers, SLICE("memory")) && !is_v2()) {
		snprintf(path, sizeof(path), CGROUP_ROOT "/memory%s", group);
		*can = can_make_below(path, "memory.limit_in_bytes");
	}
	if (controllers.len > 0 || !is_v2())
		return;
	snprintf(path, sizeof(path), CGROUP_ROOT "%s", group);
	*can = can_make_v2(path);
	if (*can || strcmp(group, "/") == 0)
		return;
	*strrchr(path, '/') = '\0';
	*can = can_make_v2(path);
}

bool local_has_groups(void)
{
	bool can = false;
	each_own(try_to_make, &can);
	return can;
}
