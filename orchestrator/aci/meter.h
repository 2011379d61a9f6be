/* What a group has used, and what is paid for it: metrics of Azure Monitor, asked for once a minute while it runs and once more while it
 * is removed, and the seconds from the first pull of an image to its end. Nothing waits for any of it, and nothing fails by it. */
#ifndef CAGE_ACI_METER_H
#define CAGE_ACI_METER_H

#include "orchestrator/azure/arm.h"
#include "orchestrator/azure/instance.h"
#include "orchestrator/azure/metrics.h"
#include "orchestrator/keeper/result.h"

struct meter {
	struct arm_call calls[METRICS_PARTS];
	struct metrics_span span; /* that they ask about */
	struct metrics metrics;
	uint64_t next_us;  /* monotonic: of the next question; 0: there is none */
	bool was_refused;  /* it is not asked again, and was said once */
	uint64_t asked_us; /* wall clock: of the PUT, or of the first look at a group that was there; 0: none */
	struct instance_times times;
	struct instance_share share;
};

/* From when it is paid for, and whether that was told by Azure. now_us: wall clock. */
uint64_t meter_from(const struct meter *m, uint64_t now_us, bool *is_told);

/* Whole seconds, as they are paid for. */
uint64_t meter_billed_s(uint64_t from_us, uint64_t to_us);

#endif
