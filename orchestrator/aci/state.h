/* How far a sandbox of Azure is, and what may follow; aci.h says what the states are. */
#ifndef CAGE_ACI_STATE_H
#define CAGE_ACI_STATE_H

#include <stdbool.h>

enum aci_state {
	ACI_WAITS,
	ACI_REGISTERS,
	ACI_LOOKS,
	ACI_QUOTA,
	ACI_CREATES,
	ACI_CLEARS,
	ACI_RUNS,
	ACI_STOPS,
	ACI_TELLS,
	ACI_DELETES,
	ACI_LEAVES,
	ACI_ENDED,
	ACI_STATES
};

/* Before anything was asked for the end comes at once, and before the group was, only the gateway is left. */
static inline bool aci_may_follow(enum aci_state from, enum aci_state to)
{
	static const unsigned next[ACI_STATES] = {
		[ACI_WAITS] = 1u << ACI_REGISTERS | 1u << ACI_LOOKS | 1u << ACI_ENDED,
		[ACI_REGISTERS] = 1u << ACI_LOOKS | 1u << ACI_LEAVES,
		[ACI_LOOKS] = 1u << ACI_QUOTA | 1u << ACI_CREATES | 1u << ACI_CLEARS | 1u << ACI_RUNS |
			      1u << ACI_DELETES | 1u << ACI_LEAVES | 1u << ACI_ENDED,
		[ACI_QUOTA] = 1u << ACI_LOOKS | 1u << ACI_CREATES | 1u << ACI_DELETES,
		[ACI_CREATES] = 1u << ACI_LOOKS | 1u << ACI_CLEARS | 1u << ACI_RUNS | 1u << ACI_DELETES,
		[ACI_CLEARS] = 1u << ACI_LOOKS | 1u << ACI_DELETES,
		[ACI_RUNS] = 1u << ACI_STOPS | 1u << ACI_TELLS | 1u << ACI_DELETES,
		[ACI_STOPS] = 1u << ACI_TELLS | 1u << ACI_DELETES,
		[ACI_TELLS] = 1u << ACI_DELETES,
		[ACI_DELETES] = 1u << ACI_LEAVES | 1u << ACI_ENDED,
		[ACI_LEAVES] = 1u << ACI_ENDED,
		[ACI_ENDED] = 0,
	};
	return next[from] & 1u << to;
}

#endif
