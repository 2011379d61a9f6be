/* How much an agent may use. */
#ifndef CAGE_GATE_ROOM_LIMITS_H
#define CAGE_GATE_ROOM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;

/* 0: not asked for. */
struct room_limits {
	uint64_t mem;     /* bytes of all processes together; of each one where there is no cgroup */
	uint64_t cpu;     /* thousandths of a processor */
	uint64_t pids;    /* processes and threads */
	uint64_t files;   /* descriptors of a process */
	uint64_t fsize;   /* bytes of a file */
	uint64_t seconds; /* from start to end */
};

/* Numbers as options have them, all of the text: 17; 17 with K, M or G. 0, or -1 for anything else. */
int room_limits_number(const char *text, size_t len, uint64_t *out);
int room_limits_size(const char *text, size_t len, uint64_t *out);

/* "mem=2G,cpu=1.5,time=10m" into *out. 0, or -1 after it has said what is wrong. */
int room_limits_parse(struct room_limits *out, const char *text);

/* Gate: gets SIGALRM when the time is over. 0, or -1 after it has said why not. */
int room_limits_start_clock(const struct room_limits *limits);

/* In the process that becomes CMD: what the cgroup does not hold, and what it can't. 0, or -1 after it has said why
 * not. */
int room_limits_apply(const struct room_limits *limits, const struct cgroup *cgroup);

#endif
