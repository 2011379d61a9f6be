/* cage-inside --verify: it is in every sandbox, whatever its image has, and only root could change it there. */
#include "orchestrator/inside/verify.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "orchestrator/probes.h"

#define NO_BAIT "-none is laid for a sandbox that runs"

static const char *const baits[BAITS] = {NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT, NO_BAIT};

static bool is_room(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) == 0 && probes_are_confined())
		return true;
	fputs("cage-inside: this is not a room: nothing is tried here\n", stderr);
	return false;
}

/* Whoever is at work in the sandbox can end this, but not speak in its place. */
int verify_sandbox(void)
{
	probes_room = (struct probes_room){.is_sandbox = true, .parent = getppid(), .baits = baits};
	return is_room() && probes_run() ? 0 : 1;
}

bool verify_group(void)
{
	probes_room = (struct probes_room){
		.is_sandbox = true, .is_shared = true, .is_entering = true, .parent = getppid(), .baits = baits};
	return is_room() && probes_run();
}
