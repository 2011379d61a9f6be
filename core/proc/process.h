/* What every process of cage begins with. */
#ifndef CAGE_PROC_PROCESS_H
#define CAGE_PROC_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* Before anything else in main: no core dumps, no SIGPIPE, and of what was inherited, children that can be waited for and
 * descriptors 0, 1 and 2 that are there, or it ends here. */
void process_harden(void);

/* Closes every descriptor above stderr but these. */
void process_keep_fds(int *keep, size_t n);

/* In a child, right after fork: named; the signals that the master handles for all are ignored. */
void process_become(const char *name);

/* From here on this process is killed when the master (parent) dies. */
void process_die_with(pid_t parent);

#endif
