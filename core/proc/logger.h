/* The log writer process: alone touches the disk. */
#ifndef CAGE_PROC_LOGGER_H
#define CAGE_PROC_LOGGER_H

#include "core/audit/writer.h"

struct logger_config {
	const char *path;
	uint64_t most; /* bytes of it; 0: any */
	bool turns;    /* then another one is begun */
	struct audit_writer_shared *shared;
	struct audit_ring *const *rings; /* the master's, then one per worker */
	size_t n_rings;
	int control; /* to the master */
	int wake;    /* eventfd: a worker has put something into an empty or crowded ring */
	int living;  /* at its end when the master and all workers are gone */
};

/* Never returns. */
_Noreturn void logger_run(const struct logger_config *config);

#endif
