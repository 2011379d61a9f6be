/* From what was asked for to what there will be: the profile below it, the defaults below that, the maximum above. */
#include "orchestrator/service/create.h"

#include <stdio.h>
#include <string.h>

#include "orchestrator/service/create_one.h"

static const char *text_in(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- the profile ---- */

/* These are mended entry by entry, all others as a whole. */
static bool is_merged(const char *key)
{
	return strcmp(key, "limits") == 0 || strcmp(key, "labels") == 0 || strcmp(key, "env") == 0;
}

/* A way out of one's own takes the place of the profile's, of whichever kind that is. */
static void drop_way_out(json_t *full, const json_t *body)
{
	if (!json_object_get(body, "network") && !json_object_get(body, "policy"))
		return;
	json_object_del(full, "network");
	json_object_del(full, "policy");
}

/* So does what it is made of. */
static void drop_root(json_t *full, const json_t *body)
{
	if (!json_object_get(body, "rootfs") && !json_object_get(body, "image"))
		return;
	json_object_del(full, "rootfs");
	json_object_del(full, "image");
}

static void put_over(json_t *full, const json_t *body)
{
	const char *key;
	json_t *value;
	drop_way_out(full, body);
	drop_root(full, body);
	json_object_foreach((json_t *)body, key, value)
	{
		json_t *below = json_object_get(full, key);
		if (is_merged(key) && below)
			json_object_update(below, value);
		else
			json_object_set(full, key, value);
	}
}

json_t *create_with_profile(const struct config *c, const json_t *body, json_t *errors)
{
	const char *name = text_in(body, "profile");
	const json_t *profile = name ? json_object_get(c->profiles, name) : NULL;
	if (name && !profile) {
		errors_add(errors, "/profile", "there is no profile of that name");
		return NULL;
	}
	json_t *full = profile ? json_deep_copy(profile) : json_object();
	if (full)
		put_over(full, body);
	return full;
}

/* ---- limits ---- */

static const struct limit_row {
	const char *name;
	size_t offset;
} rows[] = {
	{"memory", offsetof(struct sandbox_limits, memory)},
	{"pids", offsetof(struct sandbox_limits, pids)},
	{"disk", offsetof(struct sandbox_limits, disk)},
	{"wall_seconds", offsetof(struct sandbox_limits, wall_s)},
	{"egress_bytes", offsetof(struct sandbox_limits, egress)},
	{"output_bytes", offsetof(struct sandbox_limits, output)},
};

static uint64_t row_value(const struct sandbox_limits *l, const struct limit_row *row)
{
	uint64_t n;
	memcpy(&n, (const char *)l + row->offset, sizeof(n));
	return n;
}

static void too_much(json_t *errors, const char *name, double most)
{
	char pointer[64], detail[128];
	snprintf(pointer, sizeof(pointer), "%s%s", strcmp(name, "lifetime_seconds") == 0 ? "/" : "/limits/", name);
	snprintf(detail, sizeof(detail), "expected at most %.15g, which is the maximum of this service", most);
	errors_add(errors, pointer, detail);
}

static void put_limit(const struct config *c, json_t *limits, const json_t *asked, const struct limit_row *row,
		      json_t *errors)
{
	const json_t *value = json_object_get(asked, row->name);
	uint64_t most = row_value(&c->maximum, row);
	uint64_t n = value ? (uint64_t)json_integer_value(value) : row_value(&c->defaults, row);
	if (n > most)
		too_much(errors, row->name, (double)most);
	json_object_set_new(limits, row->name, json_integer((json_int_t)n));
}

static json_t *limits_of(const struct config *c, const json_t *asked, json_t *errors)
{
	json_t *limits = json_object();
	const json_t *cpu = json_object_get(asked, "cpu");
	double n = cpu ? json_number_value(cpu) : c->defaults.cpu;
	if (n > c->maximum.cpu)
		too_much(errors, "cpu", c->maximum.cpu);
	json_object_set_new(limits, "cpu", json_real(n));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		put_limit(c, limits, asked, &rows[i], errors);
	return limits;
}

static json_int_t lifetime_of(const struct config *c, const json_t *full, json_t *errors)
{
	const json_t *value = json_object_get(full, "lifetime_seconds");
	json_int_t n = value ? json_integer_value(value) : (json_int_t)c->defaults.lifetime_s;
	if ((uint64_t)n > c->maximum.lifetime_s)
		too_much(errors, "lifetime_seconds", (double)c->maximum.lifetime_s);
	return n;
}

/* ---- the way out ---- */

static void check_way_out(const json_t *full, json_t *errors)
{
	const json_t *network = json_object_get(full, "network"), *policy = json_object_get(full, "policy");
	const char *mode = text_in(network, "mode");
	bool wants_policy = mode && strcmp(mode, "policy") == 0;
	if (wants_policy && !policy)
		errors_add(errors, "/network/mode", "there is no policy");
	if (mode && !wants_policy && policy)
		errors_add(errors, "/policy", "is only for network mode policy");
	if (mode && strcmp(mode, "allowlist") != 0 && json_object_get(network, "domain_allowlist"))
		errors_add(errors, "/network/domain_allowlist", "is only for mode allowlist");
	if (mode && strcmp(mode, "allowlist") == 0 && !json_object_get(network, "domain_allowlist"))
		errors_add(errors, "/network", "\"domain_allowlist\" is missing");
	if (!policy && json_array_size(json_object_get(full, "secrets")) > 0)
		errors_add(errors, "/secrets", "are those of a policy, and there is none");
}

/* A room's root is one of those that the operator has named: any other directory of this machine is not for who asks. */
static void check_rootfs(const struct config *c, const json_t *full, json_t *errors)
{
	const char *name = text_in(full, "rootfs");
	if (name && !json_object_get(c->rootfs, name))
		errors_add(errors, "/rootfs", "the configuration names no such root");
}

static const struct backend *backend_in(const struct config *c, const json_t *full)
{
	const char *name = text_in(full, "backend");
	for (size_t i = 0; i < c->n_backends; i++)
		if (!name || strcmp(c->backends[i]->name, name) == 0)
			return c->backends[i];
	return NULL;
}

/* Whether it may be run is for the policy to say, later. */
static void check_image(const struct backend *b, const json_t *full, json_t *errors)
{
	char detail[128];
	if (!text_in(full, "image"))
		return;
	if (b && !b->takes_images) {
		snprintf(detail, sizeof(detail), "sandboxes of the backend %s are made of no image", b->name);
		errors_add(errors, "/image", detail);
	}
	if (text_in(full, "rootfs"))
		errors_add(errors, "/image", "a sandbox has either a root or an image");
}

static void tell_no_backend(const struct config *c, json_t *errors)
{
	char detail[LIMIT_SERVE_PROBLEM] = "the configuration names no such backend; it has ";
	static const char end[] = ": others are added to `backends` of the service's configuration";
	for (size_t i = 0; i < c->n_backends && c->backends[i]; i++) {
		strncat(detail, i > 0 ? ", " : "", sizeof(detail) - strlen(detail) - 1);
		strncat(detail, c->backends[i]->name, sizeof(detail) - strlen(detail) - 1);
	}
	strncat(detail, end, sizeof(detail) - strlen(detail) - 1);
	errors_add(errors, "/backend", detail);
}

static const char *check_backend(const struct config *c, const json_t *full, json_t *errors)
{
	const struct backend *b = backend_in(c, full);
	if (!b)
		tell_no_backend(c, errors);
	check_image(b, full, errors);
	if (b && b->one_files > 0)
		create_check_one(b, full, errors);
	return b ? b->name : "";
}

/* Nothing but loopback, unless the configuration names it. */
static bool may_publish(const struct config *c, const char *address)
{
	for (size_t i = 0; i < c->n_publish; i++)
		if (strcmp(c->publish[i], address) == 0)
			return true;
	return strcmp(address, "127.0.0.1") == 0;
}

static void check_published(const struct config *c, const json_t *full, json_t *errors)
{
	size_t i;
	json_t *item;
	char pointer[64];
	json_array_foreach(json_object_get(full, "publish"), i, item)
	{
		const char *address = text_in(item, "address");
		snprintf(pointer, sizeof(pointer), "/publish/%zu/address", i);
		if (address && !may_publish(c, address))
			errors_add(errors, pointer, "the configuration does not allow this address");
	}
}

/* ---- what a keeper can be told ---- */

static size_t bytes_in(const json_t *value)
{
	return json_string_length(value) + 1;
}

/* The command is one message to cage-inside (spec.c of the keeper), with the directory that it begins in. */
static size_t check_command(const json_t *full, json_t *errors)
{
	size_t i, bytes = 0;
	json_t *word;
	json_array_foreach(json_object_get(full, "command"), i, word) bytes += bytes_in(word);
	if (bytes > LIMIT_SERVE_COMMAND)
		errors_add(errors, "/command", "expected at most 30000 bytes in all, with one more for each word");
	return bytes;
}

/* The kernel has a bound for each variable, the room for their number. */
static size_t check_variables(const json_t *full, json_t *errors)
{
	size_t bytes = 0;
	const char *name;
	json_t *value, *env = json_object_get(full, "env");
	char pointer[LIMIT_SERVE_POINTER];
	json_object_foreach(env, name, value)
	{
		bytes += strlen(name) + 1 + bytes_in(value);
		snprintf(pointer, sizeof(pointer), "/env/%s", name);
		if (bytes_in(value) > LIMIT_SERVE_VARIABLE)
			errors_add(errors, pointer, "expected less than 65536 bytes");
	}
	if (json_object_size(env) > LIMIT_SERVE_VARIABLES)
		errors_add(errors, "/env", "expected at most 128 variables");
	return bytes;
}

static void check_sizes(const json_t *full, json_t *errors)
{
	size_t bytes = check_command(full, errors) + check_variables(full, errors);
	if (bytes > LIMIT_SERVE_SPEC)
		errors_add(errors, "/env", "expected at most 512 KiB in all, with the command");
}

/* ---- all of it ---- */

static json_t *all_tools(const struct backend *b)
{
	json_t *list = json_array();
	for (size_t i = 0; i < TOOLS && !(b && b->one_files > 0); i++)
		json_array_append_new(list, json_string(tool_names[i]));
	return list;
}

static void copy(json_t *spec, const json_t *full, const char *key)
{
	json_t *value = json_object_get(full, key);
	if (value)
		json_object_set(spec, key, value);
}

json_t *create_spec(const struct config *c, const json_t *full, json_t *errors)
{
	static const char *const kept[] = {"profile", "rootfs",           "image",  "command", "env", "tools",
					   "secrets", "blocked_commands", "labels", "publish"};
	json_t *spec = json_pack("{s:s, s:o, s:I, s:b}", "backend", check_backend(c, full, errors), "limits",
				 limits_of(c, json_object_get(full, "limits"), errors), "lifetime_seconds",
				 lifetime_of(c, full, errors), "keep", json_is_true(json_object_get(full, "keep")));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]) && spec; i++)
		copy(spec, full, kept[i]);
	if (spec && !json_object_get(spec, "tools"))
		json_object_set_new(spec, "tools", all_tools(backend_in(c, full)));
	if (spec && !json_object_get(spec, "labels"))
		json_object_set_new(spec, "labels", json_object());
	check_way_out(full, errors);
	check_rootfs(c, full, errors);
	check_published(c, full, errors);
	check_sizes(full, errors);
	if (!spec || json_array_size(errors) == 0)
		return spec;
	json_decref(spec);
	return NULL;
}
