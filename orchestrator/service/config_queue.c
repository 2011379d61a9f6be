/* What the service as a whole takes on: places, quotas, turns, and how long what has ended stays. */
#include <string.h>

#include "orchestrator/service/config_private.h"
#include "orchestrator/service/config_profiles.h"

static struct config *config_of(void *out)
{
	return out;
}

static void read_places(struct loader *l, const struct node *value, size_t *out)
{
	uint64_t n = *out;
	config_count(l, value, LIMIT_SERVE_RUNNING, &n);
	*out = (size_t)n;
}

void config_running(struct loader *l, const struct node *value, void *out)
{
	read_places(l, value, &config_of(out)->queue.running);
}

void config_queued(struct loader *l, const struct node *value, void *out)
{
	config_count(l, value, LIMIT_SERVE_QUEUED, &config_of(out)->queued);
}

void config_starts(struct loader *l, const struct node *value, void *out)
{
	struct policy_rate rate;
	if (!rate_read(l, value, &rate))
		return;
	config_of(out)->queue.starts = rate.count;
	config_of(out)->queue.period_us = rate.period_us;
}

void config_retention(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, LIMIT_SERVE_RETENTION_S, &config_of(out)->retention_us);
}

static void read_records(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, LIMIT_SERVE_RECORDS_S, &config_of(out)->records_us);
}

static void read_usage(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, LIMIT_SERVE_RECORDS_S, &config_of(out)->usage_us);
}

static void read_warm_age(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, LIMIT_SERVE_WARM_AGE_MAX_S, &config_of(out)->warm_age_us);
}

static void read_log(struct loader *l, const struct node *value, void *out)
{
	if (size_read(l, value, LIMIT_LOG_MOST, &config_of(out)->log_max) && config_of(out)->log_max < LIMIT_LOG_LEAST)
		node_error(l->errs, value, "expected at least %zu KiB", (size_t)LIMIT_LOG_LEAST / 1024);
}

void config_limits(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {
		{WORD("running"), config_running, KEY_OPTIONAL}, {WORD("queued"), config_queued, KEY_OPTIONAL},
		{WORD("starts"), config_starts, KEY_OPTIONAL},   {WORD("retention"), config_retention, KEY_OPTIONAL},
		{WORD("records"), read_records, KEY_OPTIONAL},   {WORD("usage"), read_usage, KEY_OPTIONAL},
		{WORD("warm_age"), read_warm_age, KEY_OPTIONAL}, {WORD("log"), read_log, KEY_OPTIONAL}};
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

/* ---- quotas ---- */

static void read_label(struct loader *l, const struct node *value, char *out)
{
	if (value->kind != NODE_TEXT || !label_name_is_good(value->text)) {
		node_error(l->errs, value, "expected 1 to %d of a-z, 0-9, '.', '_' or '-', got %s", LIMIT_SERVE_LABEL,
			   node_describe(value).text);
		return;
	}
	memcpy(out, value->text.ptr, value->text.len);
	out[value->text.len] = '\0';
}

static void read_quota_label(struct loader *l, const struct node *value, void *out)
{
	read_label(l, value, ((struct quota *)out)->label);
}

static void read_quota_value(struct loader *l, const struct node *value, void *out)
{
	struct quota *q = out;
	q->any = false;
	config_text(l, value, q->value, sizeof(q->value));
}

static void read_quota_running(struct loader *l, const struct node *value, void *out)
{
	read_places(l, value, &((struct quota *)out)->running);
}

void config_quotas(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("label"), read_quota_label, KEY_REQUIRED},
					  {WORD("value"), read_quota_value, KEY_OPTIONAL},
					  {WORD("running"), read_quota_running, KEY_REQUIRED}};
	struct queue_rules *rules = &config_of(out)->queue;
	if (!list_check(l, value, "quotas"))
		return;
	if (value->count > LIMIT_SERVE_QUOTAS) {
		node_error(l->errs, value, "expected at most %d quotas", LIMIT_SERVE_QUOTAS);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next) {
		struct quota *q = &rules->quotas[rules->n_quotas++];
		*q = (struct quota){.any = true};
		section_read(l, item, keys, sizeof(keys) / sizeof(keys[0]), q);
	}
}

void config_fair(struct loader *l, const struct node *value, void *out)
{
	read_label(l, value, config_of(out)->queue.fair);
}
