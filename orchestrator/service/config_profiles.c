/* YAML to JSON, where units and flags are known by their keys. */
#include "orchestrator/service/config_profiles.h"

#include "orchestrator/service/config_private.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/node_json.h"

static void put(json_t *profile, const struct node *value, json_t *json)
{
	json_object_setn_new(profile, value->key.ptr, value->key.len, json);
}

static void read_as_it_is(struct loader *l, const struct node *value, void *out)
{
	(void)l;
	put(out, value, node_json(value));
}

static void put_number(json_t *limits, const char *name, uint64_t value)
{
	if (value != UINT64_MAX)
		json_object_set_new(limits, name, json_integer((json_int_t)value));
}

static void read_limits(struct loader *l, const struct node *value, void *out)
{
	const uint64_t none = UINT64_MAX;
	struct sandbox_limits given = {-1, none, none, none, none, none, none, none};
	config_limits_read(l, value, &given);
	json_t *limits = json_object();
	if (given.cpu > 0)
		json_object_set_new(limits, "cpu", json_real(given.cpu));
	put_number(limits, "memory", given.memory);
	put_number(limits, "pids", given.pids);
	put_number(limits, "disk", given.disk);
	put_number(limits, "wall_seconds", given.wall_s);
	put_number(limits, "egress_bytes", given.egress);
	put_number(limits, "output_bytes", given.output);
	put(out, value, limits);
	put_number(out, "lifetime_seconds", given.lifetime_s);
}

static void read_lifetime(struct loader *l, const struct node *value, void *out)
{
	uint64_t us = 0;
	if (duration_read(l, value, LIMIT_SERVE_LIFE_S, &us))
		put_number(out, "lifetime_seconds", us / 1000000);
}

static void read_keep(struct loader *l, const struct node *value, void *out)
{
	bool keep = false;
	if (flag_read(l, value, &keep))
		put(out, value, json_boolean(keep));
}

static void read_warm(struct loader *l, const struct node *value, void *out)
{
	uint64_t n = 0;
	config_count(l, value, LIMIT_SERVE_WARM, &n);
	put(out, value, json_integer((json_int_t)n));
}

static const struct key profile_keys[] = {
	{WORD("command"), read_as_it_is, KEY_OPTIONAL}, {WORD("env"), read_as_it_is, KEY_OPTIONAL},
	{WORD("rootfs"), read_as_it_is, KEY_OPTIONAL},  {WORD("image"), read_as_it_is, KEY_OPTIONAL},
	{WORD("backend"), read_as_it_is, KEY_OPTIONAL}, {WORD("tools"), read_as_it_is, KEY_OPTIONAL},
	{WORD("network"), read_as_it_is, KEY_OPTIONAL}, {WORD("policy"), read_as_it_is, KEY_OPTIONAL},
	{WORD("secrets"), read_as_it_is, KEY_OPTIONAL}, {WORD("labels"), read_as_it_is, KEY_OPTIONAL},
	{WORD("limits"), read_limits, KEY_OPTIONAL},    {WORD("lifetime"), read_lifetime, KEY_OPTIONAL},
	{WORD("keep"), read_keep, KEY_OPTIONAL},        {WORD("blocked_commands"), read_as_it_is, KEY_OPTIONAL},
	{WORD("warm"), read_warm, KEY_OPTIONAL},
};

static void report(struct loader *l, const struct node *value, const json_t *errors)
{
	size_t i;
	json_t *e;
	json_array_foreach(errors, i, e)
	{
		const char *pointer = json_string_value(json_object_get(e, "pointer"));
		node_error(l->errs, value, "%s: %s", pointer ? pointer : "",
			   json_string_value(json_object_get(e, "detail")));
	}
}

/* It is no wish of a create, but what the service does beforehand. */
static void take_warm(struct config *c, const struct node *value, json_t *profile)
{
	json_t *warm = json_object_get(profile, "warm");
	for (const struct node *one = value->first; one && json_integer_value(warm) > 0; one = one->next) {
		if (!slice_eq(one->key, SLICE("warm")))
			continue;
		json_object_setn(c->warm, value->key.ptr, value->key.len, warm);
		json_object_setn_new(c->warm_at, value->key.ptr, value->key.len,
				     json_pack("[i, i]", (int)one->at.line, (int)one->at.column));
	}
	json_object_del(profile, "warm");
}

static void read_profile(struct loader *l, const struct node *value, struct config *c)
{
	json_t *profile = json_object(), *errors = json_array();
	if (!word_is_plain(value->key, LIMIT_SANDBOX))
		node_key_error(l->errs, value, "expected a name of letters, digits, '.', '_' or '-'");
	section_read(l, value, profile_keys, sizeof(profile_keys) / sizeof(profile_keys[0]), profile);
	take_warm(c, value, profile);
	create_check(profile, errors);
	report(l, value, errors);
	put(c->profiles, value, profile);
	json_decref(errors);
}

void config_profiles_read(struct loader *l, const struct node *value, struct config *c)
{
	if (value->kind != NODE_MAP || value->count > LIMIT_SERVE_PROFILES) {
		node_error(l->errs, value, "expected a mapping of at most %d profiles", LIMIT_SERVE_PROFILES);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next)
		read_profile(l, item, c);
}
