/* cage-gate: runs an agent where the network ends at cage, or not at all. */
#include "core/base/standard_fds.h"
#include "core/base/usage.h"
#include "orchestrator/gate/lock.h"
#include "orchestrator/gate/options.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/probe.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/supervise.h"
#include "orchestrator/gate/sweep.h"

/* With a launcher the gate ends when it does. It has died already when we are not its child any more; it can't be
 * told then, but its end of the handoff is closed, and nothing is run. */
static int run(struct options *options)
{
	if (options->handoff >= 0)
		privileges_die_with_parent();
	if (sweep_begin() < 0) {
		say_errno("orphans of the room");
		return EXIT_UNLOCKED;
	}
	enum gate_mode mode = options->mode == MODE_AUTO ? probe_best() : options->mode;
	switch (mode) {
	case MODE_NETNS:
		return lock_netns(options);
	case MODE_SECCOMP:
		return lock_seccomp(options);
	case MODE_AUTO:
		break;
	}
	return probe_say_none();
}

int main(int argc, char **argv)
{
	static struct options options;
	if (standard_fds_open() < 0) {
		say_errno("/dev/null");
		return EXIT_UNLOCKED;
	}
	supervise_prepare();
	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		return run(&options);
	case OPTIONS_PROBE:
		return probe_print(&options);
	case OPTIONS_CHOOSE:
		return probe_choose(&options);
	case OPTIONS_EXIT_OK:
		return usage_printed();
	case OPTIONS_EXIT_USAGE:
		return EXIT_USAGE;
	}
	return EXIT_USAGE;
}
