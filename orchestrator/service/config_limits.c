/* Limits of a sandbox: the same keys in `defaults`, `maximum` and profiles. */
#include "orchestrator/service/config_private.h"
#include "orchestrator/service/config_profiles.h"

static struct sandbox_limits *limits_of(void *out)
{
	return out;
}

static void read_cpu(struct loader *l, const struct node *value, void *out)
{
	if (config_decimal(l, value, &limits_of(out)->cpu) && (limits_of(out)->cpu <= 0 || limits_of(out)->cpu > 1024))
		node_error(l->errs, value, "expected more than 0 and at most 1024 processors");
}

static void read_memory(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LIMIT_SERVE_LARGEST, &limits_of(out)->memory);
}

static void read_pids(struct loader *l, const struct node *value, void *out)
{
	config_count(l, value, 1000000, &limits_of(out)->pids);
}

static void read_disk(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LIMIT_SERVE_LARGEST, &limits_of(out)->disk);
}

static void read_seconds(struct loader *l, const struct node *value, uint64_t *out)
{
	uint64_t us = 0;
	if (duration_read(l, value, LIMIT_SERVE_LIFE_S, &us))
		*out = us / 1000000;
}

static void read_wall(struct loader *l, const struct node *value, void *out)
{
	read_seconds(l, value, &limits_of(out)->wall_s);
}

static void read_egress(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LIMIT_SERVE_LARGEST, &limits_of(out)->egress);
}

static void read_output(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, MIB(1024), &limits_of(out)->output);
}

static void read_lifetime(struct loader *l, const struct node *value, void *out)
{
	read_seconds(l, value, &limits_of(out)->lifetime_s);
}

static const struct key limit_keys[] = {
	{WORD("cpu"), read_cpu, KEY_OPTIONAL},       {WORD("memory"), read_memory, KEY_OPTIONAL},
	{WORD("pids"), read_pids, KEY_OPTIONAL},     {WORD("disk"), read_disk, KEY_OPTIONAL},
	{WORD("wall"), read_wall, KEY_OPTIONAL},     {WORD("egress"), read_egress, KEY_OPTIONAL},
	{WORD("output"), read_output, KEY_OPTIONAL}, {WORD("lifetime"), read_lifetime, KEY_OPTIONAL},
};

void config_limits_read(struct loader *l, const struct node *value, struct sandbox_limits *out)
{
	section_read(l, value, limit_keys, sizeof(limit_keys) / sizeof(limit_keys[0]), out);
}
