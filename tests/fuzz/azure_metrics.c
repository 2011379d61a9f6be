/* What Azure tells of a group, and of what it has used, in whatever JSON. Promises: sums are finite and no larger than what the bounds
 * let be, and times and shares are such as there are. */
#include "orchestrator/azure/metrics.h"

#include <math.h>

#include "orchestrator/azure/instance.h"
#include "orchestrator/azure/when.h"
#include "tests/fuzz/fuzz.h"

static void look_at_group(const json_t *value)
{
	struct instance_times t;
	struct instance_share s;
	instance_times(value, "agent", &t);
	if (instance_share(value, &s))
		PROMISE(s.cpu_hundredths <= LIMIT_ACI_SHARE * 100 && s.memory_thousandths <= LIMIT_ACI_SHARE * 1000);
	instance_state(value, "agent");
}

static void look_at_metrics(const json_t *value)
{
	const struct metrics_span span = {1763409600000000ull, 1763413200000000ull};
	struct metrics m = {0};
	metrics_take(&m, value, span);
	for (enum metric_name n = METRIC_CPU; n < METRICS; n++) {
		PROMISE(m.of[n].seconds <= LIMIT_METRICS_POINTS * 21600ull);
		PROMISE(isfinite(m.of[n].sum) && m.of[n].sum >= 0 && isfinite(m.of[n].peak) && m.of[n].peak >= 0);
	}
	PROMISE(metrics_memory_average(&m) <= metrics_peak(&m, METRIC_MEMORY));
	PROMISE(metrics_cpu_us(&m) < UINT64_MAX / 2 && metrics_total(&m, METRIC_SENT) <= 21600ull * 100000000000000ull);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size));
	uint64_t us;
	json_t *value = json_loadb(input.ptr, input.len, JSON_DECODE_ANY, NULL);
	look_at_group(value);
	look_at_metrics(value);
	json_decref(value);
	if (when_parse(input, &us))
		PROMISE(input.len > 19 && us / 1000000 < 253402300800ull);
	fuzz_free(&input);
	return 0;
}
