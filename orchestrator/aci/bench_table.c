/* What was measured, for people and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/say.h"
#include "orchestrator/aci/bench.h"

static const char *const names[PHASES] = {"accepted", "pulling", "pulled", "started", "line", "gone"};

/* ---- of all runs ---- */

struct spread {
	size_t n;
	double least, median, p95, most; /* seconds */
};

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of those that have not failed. */
static struct spread spread_of(const struct bench *b, enum bench_phase phase)
{
	double all[LIMIT_BENCH_RUNS];
	struct spread s = {0};
	for (size_t i = 0; i < b->options->runs; i++)
		if (b->runs[i].knows[phase] && !b->runs[i].why[0])
			all[s.n++] = (double)b->runs[i].phases[phase] / 1e6;
	if (s.n == 0)
		return s;
	qsort(all, s.n, sizeof(all[0]), by_size);
	s.least = all[0];
	s.most = all[s.n - 1];
	s.median = (all[(s.n - 1) / 2] + all[s.n / 2]) / 2;
	s.p95 = all[(size_t)ceil(0.95 * (double)s.n) - 1];
	return s;
}

static size_t count_failed(const struct bench *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->options->runs; i++)
		n += b->runs[i].why[0] != '\0';
	return n;
}

struct paid {
	uint64_t seconds, nano;
};

static struct paid paid_for(const struct bench *b)
{
	uint64_t vcpu_us = 0, gb_us = 0;
	struct paid p = {0};
	for (size_t i = 0; i < b->options->runs; i++) {
		const struct bench_run *r = &b->runs[i];
		p.seconds += r->billed_s;
		vcpu_us += r->billed_s * r->meter.share.cpu_hundredths * 10000;
		gb_us += r->billed_s * r->meter.share.memory_thousandths * 1000;
	}
	p.nano = cost_nano(&b->own.prices, vcpu_us, gb_us);
	return p;
}

/* ---- as JSON ---- */

static json_t *spread_json(const struct spread *s)
{
	if (s->n == 0)
		return json_pack("{s:i}", "n", 0);
	return json_pack("{s:I, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->n, "min", s->least, "median", s->median,
			 "p95", s->p95, "max", s->most);
}

static json_t *run_json(const struct bench_run *r)
{
	json_t *out = json_pack("{s:s, s:I}", "id", r->id, "billed_seconds", (json_int_t)r->billed_s);
	for (enum bench_phase p = PHASE_ACCEPTED; p < PHASES; p++)
		if (r->knows[p])
			json_object_set_new(out, names[p], json_real((double)r->phases[p] / 1e6));
	if (r->why[0])
		json_object_set_new(out, "failed", json_string(r->why));
	return out;
}

static bool print_json(const struct bench *b)
{
	json_t *phases = json_object(), *each = json_array();
	const struct paid paid = paid_for(b);
	for (enum bench_phase p = PHASE_ACCEPTED; p < PHASES; p++) {
		const struct spread s = spread_of(b, p);
		json_object_set_new(phases, names[p], spread_json(&s));
	}
	for (size_t i = 0; i < b->options->runs; i++)
		json_array_append_new(each, run_json(&b->runs[i]));
	json_t *all = json_pack("{s:s, s:I, s:I, s:I, s:o, s:I, s:o}", "region", b->own.regions.list[0], "runs",
				(json_int_t)b->options->runs, "parallel", (json_int_t)b->options->parallel, "failed",
				(json_int_t)count_failed(b), "phases", phases, "billed_seconds",
				(json_int_t)paid.seconds, "each", each);
	if (b->own.prices.is_set)
		json_object_set_new(
			all, "cost",
			json_pack("{s:f, s:s}", "amount", (double)paid.nano / 1e9, "currency", b->own.currency));
	const bool ok = json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 && putchar('\n') != EOF &&
			fflush(stdout) == 0;
	json_decref(all);
	return ok;
}

/* ---- for people ---- */

static void print_failures(const struct bench *b)
{
	for (size_t i = 0; i < b->options->runs; i++)
		if (b->runs[i].why[0])
			say("bench: cage-%s: %s", b->runs[i].id, b->runs[i].why);
}

static bool print_table(const struct bench *b)
{
	const struct paid paid = paid_for(b);
	printf("%-10s %5s %9s %9s %9s %9s\n", "PHASE", "RUNS", "MIN", "MEDIAN", "P95", "MAX");
	for (enum bench_phase p = PHASE_ACCEPTED; p < PHASES; p++) {
		const struct spread s = spread_of(b, p);
		if (s.n > 0)
			printf("%-10s %5zu %7.3f s %7.3f s %7.3f s %7.3f s\n", names[p], s.n, s.least, s.median, s.p95,
			       s.most);
		else
			printf("%-10s %5d %9s %9s %9s %9s\n", names[p], 0, "-", "-", "-", "-");
	}
	printf("billed     %llu s", (unsigned long long)paid.seconds);
	if (b->own.prices.is_set)
		printf(", %llu.%09llu %s", (unsigned long long)(paid.nano / 1000000000),
		       (unsigned long long)(paid.nano % 1000000000), b->own.currency);
	putchar('\n');
	return fflush(stdout) == 0;
}

bool bench_print(const struct bench *b)
{
	print_failures(b);
	return b->options->json ? print_json(b) : print_table(b);
}
