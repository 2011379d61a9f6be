/* Times, events and metrics as Azure tells them, and what is made of them: also of what is absurd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "orchestrator/azure/instance.h"
#include "orchestrator/azure/metrics.h"
#include "orchestrator/azure/when.h"

#define START 1763409600000000ull /* 2025-11-17T20:00:00Z */
#define MINUTE 60000000ull

static json_t *json(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);
	assert_non_null(value);
	return value;
}

/* ---- times ---- */

static void times(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t us;
	} good[] = {{"2025-11-17T20:00:00Z", START},
		    {"2025-11-17T20:00:00+00:00", START},
		    {"2025-11-17T20:00:00.5Z", START + 500000},
		    {"2025-11-17T20:00:00.1234567Z", START + 123456},
		    {"2025-11-17T20:00:00.123456789+00:00", START + 123456}};
	static const char *const bad[] = {"",
					  "2025-11-17",
					  "2025-11-17T20:00:00",
					  "2025-11-17T20:00:00.Z",
					  "2025-11-17T20:00:00.1234567890Z",
					  "2025-11-17T20:00:00+01:00",
					  "2025-13-17T20:00:00Z",
					  "2025-11-17T20:00:00Zx",
					  "1969-12-31T23:59:59Z",
					  "x025-11-17T20:00:00Z"};
	char text[WHEN_TEXT];
	uint64_t us;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(when_parse(slice_str(good[i].text), &us));
		assert_int_equal(us, good[i].us);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(when_parse(slice_str(bad[i]), &us));
	when_format(START + 999999, text);
	assert_string_equal(text, "2025-11-17T20:00:00Z");
}

/* ---- the group ---- */

static void events_of_all_containers(void **state)
{
	(void)state;
	struct instance_times t;
	json_t *group =
		json("{\"properties\": {\"initContainers\": [{\"name\": \"gate\", \"properties\": {\"instanceView\": "
		     "{\"events\": ["
		     "{\"name\": \"Pulling\", \"firstTimestamp\": \"2025-11-17T20:00:01Z\"}]}}}], \"containers\": ["
		     "{\"name\": \"proxy\", \"properties\": {\"instanceView\": {\"events\": ["
		     "{\"name\": \"Pulled\", \"firstTimestamp\": \"2025-11-17T20:00:09Z\"}, {\"name\": 7}, 8, null,"
		     "{\"name\": \"Started\", \"firstTimestamp\": \"2025-11-17T20:00:02Z\"}]}}},"
		     "{\"name\": \"agent\", \"properties\": {\"instanceView\": {\"currentState\": {\"startTime\": "
		     "\"2025-11-17T20:00:10Z\"},"
		     "\"events\": [{\"name\": \"Pulled\", \"firstTimestamp\": \"2025-11-17T20:00:08Z\"},"
		     "{\"name\": \"Pulling\", \"firstTimestamp\": [1]}]}}}]}}");
	instance_times(group, "agent", &t);
	assert_int_equal(t.pulling, START + 1000000);
	assert_int_equal(t.pulled, START + 9000000);
	assert_int_equal(t.begun, START + 10000000);
	assert_int_equal(t.started, START + 10000000);
	json_decref(group);
	group = json("{\"properties\": {\"containers\": \"none\", \"initContainers\": {\"a\": 1}}}");
	instance_times(group, "agent", &t);
	assert_int_equal(t.pulling + t.pulled + t.begun + t.started, 0);
	json_decref(group);
}

static bool share(const char *first, const char *second, struct instance_share *out)
{
	char text[1000];
	snprintf(text, sizeof(text),
		 "{\"properties\": {\"containers\": [{\"properties\": {\"resources\": {\"requests\": %s}}},"
		 "{\"properties\": {\"resources\": {\"requests\": %s}}}]}}",
		 first, second);
	json_t *group = json(text);
	const bool ok = instance_share(group, out);
	json_decref(group);
	return ok;
}

static void what_a_group_has(void **state)
{
	(void)state;
	struct instance_share s;
	assert_true(share("{\"cpu\": 0.25, \"memoryInGB\": 0.3}", "{\"cpu\": 1, \"memoryInGB\": 1.5}", &s));
	assert_int_equal(s.cpu_hundredths, 125);
	assert_int_equal(s.memory_thousandths, 1800);
	assert_false(share("{\"cpu\": -1, \"memoryInGB\": 1}", "{}", &s));
	assert_false(share("{\"cpu\": 1e308, \"memoryInGB\": 1}", "{\"cpu\": \"1\"}", &s));
	assert_false(share("[]", "null", &s));
}

/* ---- metrics ---- */

static const struct metrics_span span = {START + 30000000, START + 10 * MINUTE};

static void take(struct metrics *m, const char *interval, const char *name, const char *points)
{
	char text[8000];
	snprintf(text, sizeof(text),
		 "{\"interval\": \"%s\", \"value\": [{\"name\": {\"value\": \"%s\"}, \"timeseries\": [{\"data\": "
		 "[%s]}]}]}",
		 interval, name, points);
	json_t *answer = json(text);
	metrics_take(m, answer, span);
	json_decref(answer);
}

#define AT(minute) "{\"timeStamp\": \"2025-11-17T20:0" #minute ":00Z\""

static void averages_become_sums(void **state)
{
	(void)state;
	struct metrics m = {0};
	take(&m, "PT1M", "CpuUsage",
	     AT(0) ", \"average\": 500}," AT(1) ", \"average\": 250.5, \"maximum\": 900}," AT(2) "}");
	assert_int_equal(m.of[METRIC_CPU].seconds, 120);
	assert_int_equal(metrics_cpu_us(&m), 45030000); /* 30 s of one half, and 15.03 */
	take(&m, "PT1M", "MemoryUsage",
	     AT(0) ", \"average\": 100, \"maximum\": 300}," AT(1) ", \"average\": 200, \"maximum\": 250}");
	assert_int_equal(metrics_memory_average(&m), 150);
	assert_int_equal(metrics_peak(&m, METRIC_MEMORY), 300);
	take(&m, "PT5M", "NetworkBytesReceivedPerSecond", AT(0) ", \"average\": 10}," AT(5) ", \"average\": 0}");
	assert_int_equal(metrics_total(&m, METRIC_RECEIVED), 3000);
	assert_int_equal(m.of[METRIC_RECEIVED].seconds, 600);
	assert_false(metrics_have(&m, METRIC_SENT));
}

/* What comes late, or was there and is not any more, does not make less of what is known. */
static void an_answer_with_less_changes_nothing(void **state)
{
	(void)state;
	struct metrics m = {0};
	take(&m, "PT1M", "CpuUsage", AT(0) ", \"average\": 500}," AT(1) ", \"average\": 500}");
	take(&m, "PT1M", "CpuUsage", AT(0) ", \"average\": 1}");
	take(&m, "PT1M", "CpuUsage", "");
	assert_int_equal(metrics_cpu_us(&m), 60000000);
	take(&m, "PT1M", "CpuUsage",
	     AT(0) ", \"average\": 500}," AT(1) ", \"average\": 500}," AT(2) ", \"average\": 0}");
	assert_int_equal(m.of[METRIC_CPU].seconds, 180);
}

static void what_is_absurd_is_not_there(void **state)
{
	(void)state;
	static const char *const bad[] = {
		AT(1) ", \"average\": -1}",
		AT(1) ", \"average\": 1e308}",
		AT(1) ", \"average\": \"7\"}",
		AT(1) ", \"average\": null}",
		AT(1) ", \"average\": [1]}",
		AT(1) ", \"average\": true}",
		AT(1) ", \"maximum\": 5}",
		"{\"average\": 5}",
		"{\"timeStamp\": 5, \"average\": 5}",
		"{\"timeStamp\": \"2025-11-17T19:58:00Z\", \"average\": 5}", /* before it was there */
		"{\"timeStamp\": \"2025-11-17T20:11:00Z\", \"average\": 5}", /* to come */
		"7, null, \"x\", []"};
	struct metrics m = {0};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		take(&m, "PT1M", "CpuUsage", bad[i]);
	take(&m, "PT1M", "Unheard", AT(1) ", \"average\": 5}");
	take(&m, "PT2M", "CpuUsage", AT(1) ", \"average\": 5}");
	assert_false(metrics_have(&m, METRIC_CPU));
	take(&m, "PT1M", "CpuUsage", AT(1) ", \"average\": 5, \"maximum\": 1e300}");
	assert_int_equal(metrics_peak(&m, METRIC_CPU), 5);
}

/* All points that there may be, each as large as one may be: it can be told. */
static void many_points(void **state)
{
	(void)state;
	struct metrics m = {0};
	json_t *points = json_array(), *answer;
	for (int i = 0; i < 100000; i++)
		json_array_append_new(points,
				      json_pack("{s:s, s:f}", "timeStamp", "2025-11-17T20:01:00Z", "average", 1e11));
	answer = json_pack("{s:s, s:[{s:{s:s}, s:[{s:o}]}]}", "interval", "PT6H", "value", "name", "value",
			   "NetworkBytesTransmittedPerSecond", "timeseries", "data", points);
	metrics_take(&m, answer, span);
	json_decref(answer);
	assert_int_equal(m.of[METRIC_SENT].seconds, LIMIT_METRICS_POINTS * 21600ull);
	assert_int_equal(metrics_total(&m, METRIC_SENT), 21600ull * 100000000000ull * LIMIT_METRICS_POINTS);
}

static void questions(void **state)
{
	(void)state;
	static const struct {
		uint64_t minutes;
		const char *interval;
	} rows[] = {{1, "PT1M"}, {200, "PT1M"}, {300, "PT5M"}, {2000, "PT15M"}, {4000, "PT1H"}, {43200, "PT6H"}};
	char path[LIMIT_ARM_URL], wanted[40], long_one[LIMIT_ARM_URL];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct metrics_span s = {START + 1, START + rows[i].minutes * MINUTE};
		assert_true(metrics_path("/x", "agent", METRICS_CONTAINER, s, path));
		snprintf(wanted, sizeof(wanted), "&interval=%s&", rows[i].interval);
		assert_non_null(strstr(path, wanted));
		assert_non_null(strstr(path, "timespan=2025-11-17T20:00:00Z/"));
	}
	assert_true(metrics_path("/x", "agent", METRICS_NETWORK, span, path));
	assert_null(strstr(path, "filter"));
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	assert_false(metrics_path(long_one, "agent", METRICS_CONTAINER, span, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(events_of_all_containers),
		cmocka_unit_test(what_a_group_has),
		cmocka_unit_test(averages_become_sums),
		cmocka_unit_test(an_answer_with_less_changes_nothing),
		cmocka_unit_test(what_is_absurd_is_not_there),
		cmocka_unit_test(many_points),
		cmocka_unit_test(questions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
