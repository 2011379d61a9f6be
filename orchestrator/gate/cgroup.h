/* Limits of all processes of a room together, where a cgroup can be made: version 2, or 1. */
#ifndef CAGE_GATE_CGROUP_H
#define CAGE_GATE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct room_limits;

enum { CGROUP_DIRS = 3, CGROUP_PATH = 512 };

struct cgroup {
	char dirs[CGROUP_DIRS][CGROUP_PATH]; /* ours, one for each hierarchy */
	size_t n;
	bool holds_mem, holds_cpu, holds_pids;
};

/* Makes one for what is asked for of memory, processors and processes, and says when it can't: then each process is
 * limited for itself. */
void cgroup_make(struct cgroup *out, const struct room_limits *limits);

/* Puts them into a directory of version 2 that is there already, and says in *out which of them hold. False: none. */
bool cgroup_limit_v2(struct cgroup *out, const struct room_limits *limits, const char *dir);

/* Our directory below that one; by another name, should ours be there already. */
int cgroup_make_dir(struct cgroup *out, const char *parent);

int cgroup_add(const struct cgroup *cgroup, pid_t pid);

/* How often a limit was reached: processes that were killed for memory, and new ones that were refused. */
struct cgroup_events {
	uint64_t killed, refused;
};

/* The number behind that word, which begins a line of the file; 0 where there is none. */
uint64_t cgroup_count(const char *dir, const char *file, const char *word);

struct cgroup_events cgroup_events(const struct cgroup *cgroup);

/* Says so, where that was not never. */
void cgroup_tell(const struct cgroup *cgroup);

/* When all of its processes have ended. */
void cgroup_remove(struct cgroup *cgroup);

#endif
