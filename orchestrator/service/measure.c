/* Counting the lines of decision logs, one by one. */
#include "orchestrator/service/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/backend.h"

static const char *const kinds[] = {"allow", "flag", "block", "error"};
#define KINDS 4

struct counts {
	uint64_t decisions[KINDS];
	uint64_t egress;
	bool is_full; /* a log has reached its bound */
};

static const char *text_of(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));
	return text ? text : "";
}

static size_t kind_of(const json_t *line)
{
	size_t i = 0;
	while (i < KINDS && strcmp(text_of(line, "decision"), kinds[i]) != 0)
		i++;
	return i;
}

/* The last line of one that has reached its bound: core/audit/writer.c. */
static bool is_end_of_log(const json_t *line)
{
	return strcmp(text_of(line, "event"), "error") == 0 && strcmp(text_of(line, "stage"), "log") == 0 &&
	       strcmp(text_of(line, "reason"), "log.unavailable") == 0;
}

/* A request has two lines; its last word counts. */
static void count(struct counts *c, const json_t *line)
{
	static const char *const events[] = {"connect", "request", "message", "dns", "tool", "response"};
	size_t kind = kind_of(line), i = 0;
	const char *event = text_of(line, "event");
	c->egress += (uint64_t)json_integer_value(json_object_get(line, "bytes_out"));
	while (i < 6 && strcmp(event, events[i]) != 0)
		i++;
	c->is_full = c->is_full || is_end_of_log(line);
	if (kind == KINDS || i == 6)
		return;
	if (strcmp(event, "response") == 0) {
		if (kind < 2)
			return;
		if (c->decisions[0] > 0)
			c->decisions[0]--;
	}
	c->decisions[kind]++;
}

/* True also where there is none: then nothing was decided. */
static bool count_file(struct counts *c, const char *path)
{
	FILE *f = fopen(path, "re");
	bool ok = f || errno == ENOENT;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	while (f && (n = getline(&text, &room, f)) > 0) {
		json_t *line = json_loadb(text, (size_t)n, 0, NULL);
		count(c, line);
		json_decref(line);
	}
	free(text);
	if (f) {
		ok = !ferror(f);
		fclose(f);
	}
	return ok;
}

int measure_count(const char *dir, const void *with)
{
	struct counts c = {.egress = 0};
	char path[BACKEND_PATH + 16];
	(void)with;
	snprintf(path, sizeof(path), "%s/log.jsonl", dir);
	bool ok = count_file(&c, path);
	snprintf(path, sizeof(path), "%s/log.jsonl.dns", dir);
	ok = count_file(&c, path) && ok;
	printf("{\"egress_bytes\":%llu,\"decisions\":{\"allow\":%llu,\"flag\":%llu,\"block\":%llu,\"error\":%llu},"
	       "\"log_full\":%s}\n",
	       (unsigned long long)c.egress, (unsigned long long)c.decisions[0], (unsigned long long)c.decisions[1],
	       (unsigned long long)c.decisions[2], (unsigned long long)c.decisions[3], c.is_full ? "true" : "false");
	return ok && fflush(stdout) == 0 ? 0 : 1;
}

bool measure_log_is_full(struct slice counted)
{
	json_t *counts = counted.len ? json_loadb(counted.ptr, counted.len, 0, NULL) : NULL;
	bool is_full = json_is_true(json_object_get(counts, "log_full"));
	json_decref(counts);
	return is_full;
}

/* ---- the sum ---- */

#define GB 1000000000.0

static json_t *no_decisions(void)
{
	return json_pack("{s:i, s:i, s:i, s:i}", "allow", 0, "flag", 0, "block", 0, "error", 0);
}

/* What was set aside for it is what it costs, whether it was used or not. */
static double cost_of(const struct config *c, const json_t *limits, double wall_s, double gb_seconds)
{
	double cpu = json_number_value(json_object_get(limits, "cpu"));
	return cpu * wall_s * c->prices.vcpu_second + gb_seconds * c->prices.gb_second;
}

/* One that never began has used no time; and none is longer than any may be, whatever a clock has said. */
static double wall_of(const struct result *r)
{
	if (r->began_us == 0 || r->ended_us <= r->began_us)
		return 0;
	double s = (double)(r->ended_us - r->began_us) / 1e6;
	return s < LIMIT_SERVE_LIFE_S ? s : LIMIT_SERVE_LIFE_S;
}

json_t *measure_usage(const struct config *c, const json_t *spec, const struct result *r, struct slice counted)
{
	json_t *counts = counted.len ? json_loadb(counted.ptr, counted.len, 0, NULL) : NULL;
	json_t *decisions = json_object_get(counts, "decisions"), *limits = json_object_get(spec, "limits");
	double wall_s = wall_of(r);
	double gb_seconds = json_number_value(json_object_get(limits, "memory")) / GB * wall_s;
	json_t *usage =
		json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:{s:f, s:s}}", "wall_seconds", wall_s,
			  "cpu_seconds", (double)r->cpu_us / 1e6, "gb_seconds", gb_seconds, "memory_peak_bytes",
			  (json_int_t)r->memory_peak, "disk_peak_bytes", (json_int_t)r->disk_peak, "egress_bytes",
			  json_integer_value(json_object_get(counts, "egress_bytes")), "decisions",
			  decisions ? json_incref(decisions) : no_decisions(), "oom_kills", (json_int_t)r->oom,
			  "output_bytes", (json_int_t)r->output_bytes, "output_lost_bytes", (json_int_t)r->output_lost,
			  "cost", "amount", cost_of(c, limits, wall_s, gb_seconds), "currency", c->prices.currency);
	if (!decisions)
		json_object_set_new(usage, "counted", json_false());
	json_decref(counts);
	return usage;
}
