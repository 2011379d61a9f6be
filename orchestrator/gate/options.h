/* The command line of cage-gate. */
#ifndef CAGE_GATE_OPTIONS_H
#define CAGE_GATE_OPTIONS_H

#include <stdbool.h>

#include "orchestrator/gate/room.h"

enum gate_mode { MODE_AUTO, MODE_NETNS, MODE_SECCOMP };

enum options_action { OPTIONS_RUN, OPTIONS_PROBE, OPTIONS_CHOOSE, OPTIONS_EXIT_OK, OPTIONS_EXIT_USAGE };

struct options {
	enum gate_mode mode;
	bool json;   /* --probe prints JSON */
	bool names;  /* those of the container lead here */
	int handoff; /* unix socket to the launcher, or -1 */
	int ready;   /* gets one line when the agent is locked in, or -1 */
	struct room room;
	char **command; /* ends with NULL; borrowed from argv; NULL itself for a rehearsal, which ends before the room */
};

enum options_action options_parse(int argc, char **argv, struct options *out);

const char *mode_name(enum gate_mode mode);

#endif
