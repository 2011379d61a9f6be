/* What is asked of Azure Monitor, and what its answers come to. */
#include "orchestrator/azure/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/azure/when.h"

#define VERSION "2023-10-01"
#define STEP_US 60000000ull /* of the shortest step */

/* More than that is no measurement. */
static const struct {
	const char *name;
	double most;
} known[METRICS] = {[METRIC_CPU] = {"CpuUsage", 1e6},
		    [METRIC_MEMORY] = {"MemoryUsage", 1e14},
		    [METRIC_RECEIVED] = {"NetworkBytesReceivedPerSecond", 1e11},
		    [METRIC_SENT] = {"NetworkBytesTransmittedPerSecond", 1e11}};

static const struct step {
	const char *name;
	uint64_t seconds;
} steps[] = {{"PT1M", 60}, {"PT5M", 300}, {"PT15M", 900}, {"PT1H", 3600}, {"PT6H", 21600}};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* ---- the question ---- */

/* The longer it runs, the longer the steps, so that an answer never has many points. */
static const struct step *step_for(struct metrics_span span)
{
	const uint64_t seconds = (span.to_us - span.from_us) / 1000000;
	size_t i = 0;
	while (i + 1 < STEPS && seconds / steps[i].seconds > LIMIT_METRICS_ASKED)
		i++;
	return &steps[i];
}

bool metrics_path(const char *resource, const char *container, enum metrics_part part, struct metrics_span span,
		  char out[LIMIT_ARM_URL])
{
	char from[WHEN_TEXT], to[WHEN_TEXT], filter[100] = "";
	const enum metric_name first = part == METRICS_CONTAINER ? METRIC_CPU : METRIC_RECEIVED;
	when_format(span.from_us / STEP_US * STEP_US, from);
	when_format(span.to_us, to);
	if (part == METRICS_CONTAINER)
		snprintf(filter, sizeof(filter), "&$filter=containerName%%20eq%%20%%27%s%%27", container);
	const int n =
		snprintf(out, LIMIT_ARM_URL,
			 "%s/providers/Microsoft.Insights/metrics?api-version=" VERSION
			 "&metricnames=%s,%s&timespan=%s/%s&interval=%s&aggregation=average,maximum%s",
			 resource, known[first].name, known[first + 1].name, from, to, step_for(span)->name, filter);
	return n > 0 && n < LIMIT_ARM_URL;
}

/* ---- the answer ---- */

static bool is_good(const json_t *value, double most)
{
	const double n = json_number_value(value);
	return json_is_number(value) && n >= 0 && n <= most;
}

/* Was it measured while the group was there? One of the same name may have been before it. */
static bool is_within(const json_t *point, struct metrics_span span)
{
	const json_t *at = json_object_get(point, "timeStamp");
	uint64_t us;
	return json_is_string(at) && when_parse(slice_of(json_string_value(at), json_string_length(at)), &us) &&
	       us + STEP_US > span.from_us && us <= span.to_us;
}

static void take_point(struct metric *m, const json_t *point, double most, uint64_t seconds)
{
	const json_t *average = json_object_get(point, "average"), *maximum = json_object_get(point, "maximum");
	if (!is_good(average, most))
		return;
	const double n = json_number_value(average);
	m->seconds += seconds;
	m->sum += n * (double)seconds;
	m->peak = fmax(m->peak, n);
	if (is_good(maximum, most))
		m->peak = fmax(m->peak, json_number_value(maximum));
}

/* Of several series, as there would be without a filter, the first. */
static void take_metric(struct metric *old, const json_t *value, double most, const struct step *step,
			struct metrics_span span)
{
	const json_t *series = json_array_get(json_object_get(value, "timeseries"), 0);
	const json_t *point;
	struct metric now = {0};
	size_t i;
	json_array_foreach(json_object_get(series, "data"), i, point)
	{
		if (i == LIMIT_METRICS_POINTS)
			break;
		if (is_within(point, span))
			take_point(&now, point, most, step->seconds);
	}
	if (now.seconds >= old->seconds && now.seconds > 0)
		*old = now;
}

/* Azure may take another step than was asked for. */
static const struct step *step_of(const json_t *answer)
{
	const char *name = json_string_value(json_object_get(answer, "interval"));
	for (size_t i = 0; name && i < STEPS; i++)
		if (strcmp(name, steps[i].name) == 0)
			return &steps[i];
	return NULL;
}

void metrics_take(struct metrics *m, const json_t *answer, struct metrics_span span)
{
	const struct step *step = step_of(answer);
	const json_t *value;
	size_t i;
	if (!step)
		return;
	json_array_foreach(json_object_get(answer, "value"), i, value)
	{
		const char *name = json_string_value(json_object_get(json_object_get(value, "name"), "value"));
		if (i == LIMIT_METRICS_POINTS)
			return;
		for (enum metric_name n = METRIC_CPU; n < METRICS; n++)
			if (name && strcmp(name, known[n].name) == 0)
				take_metric(&m->of[n], value, known[n].most, step, span);
	}
}

/* ---- what they come to: the bounds above keep all of it below 2^62 ---- */

uint64_t metrics_cpu_us(const struct metrics *m)
{
	return (uint64_t)(m->of[METRIC_CPU].sum * 1000); /* millicores times seconds */
}

uint64_t metrics_memory_average(const struct metrics *m)
{
	const struct metric *memory = &m->of[METRIC_MEMORY];
	return memory->seconds > 0 ? (uint64_t)(memory->sum / (double)memory->seconds) : 0;
}

uint64_t metrics_peak(const struct metrics *m, enum metric_name name)
{
	return (uint64_t)m->of[name].peak;
}

uint64_t metrics_total(const struct metrics *m, enum metric_name name)
{
	return (uint64_t)m->of[name].sum;
}
