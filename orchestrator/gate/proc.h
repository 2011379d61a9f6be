/* What a room shows of the kernel. */
#ifndef CAGE_GATE_PROC_H
#define CAGE_GATE_PROC_H

#include "orchestrator/gate/plan.h"

int proc_plan(struct plan *plan);

/* Once it is in place: hides what tells about the machine, and makes settings read-only. */
int proc_close(void);

/* Covers what is at path, with an empty directory or an empty file; what is not there needs none. */
int proc_hide(const char *path);

#endif
