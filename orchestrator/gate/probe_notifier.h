/* The parts of mode seccomp that a platform may refuse. */
#ifndef CAGE_GATE_PROBE_NOTIFIER_H
#define CAGE_GATE_PROBE_NOTIFIER_H

enum notifier_help {
	NOTIFIER_NONE,  /* system calls can't be supervised, or somebody else does */
	NOTIFIER_HEARS, /* they can, but no socket can be given in answer (Linux before 5.14) */
	NOTIFIER_GIVES  /* all that is needed */
};

enum notifier_help probe_notifier(void);

#endif
