/* What each value by itself does not show: a configuration with which creates would fail that its caller can't mend. All of it is
 * told before the service starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/write_all.h"
#include "orchestrator/service/backend_aci.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/policies.h"
#include "orchestrator/service/pools.h"

static void tell(struct loader *l, const char *what, const char *name, const json_t *errors)
{
	size_t i;
	json_t *e;
	json_array_foreach(errors, i, e)
	{
		const char *pointer = json_string_value(json_object_get(e, "pointer"));
		error_at(l->errs, (struct where){l->path, 0, 0}, "%s%s: %s%s%s", what, name, pointer ? pointer : "",
			 pointer ? ": " : "", json_string_value(json_object_get(e, "detail")));
	}
}

static void judge_directory(const char *key, const char *path, struct loader *l)
{
	struct stat st;
	if (path[0] && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
		error_at(l->errs, (struct where){l->path, 0, 0}, "%s: there is no directory %s", key, path);
}

/* ---- limits ---- */

static const struct limit {
	const char *name;
	size_t offset;
} limits[] = {
	{"memory", offsetof(struct sandbox_limits, memory)},       {"pids", offsetof(struct sandbox_limits, pids)},
	{"disk", offsetof(struct sandbox_limits, disk)},           {"wall", offsetof(struct sandbox_limits, wall_s)},
	{"egress", offsetof(struct sandbox_limits, egress)},       {"output", offsetof(struct sandbox_limits, output)},
	{"lifetime", offsetof(struct sandbox_limits, lifetime_s)},
};

static uint64_t *value_of(struct sandbox_limits *of, const struct limit *limit)
{
	return (uint64_t *)(void *)((char *)of + limit->offset);
}

static void tell_too_high(struct loader *l, const char *name)
{
	error_at(l->errs, (struct where){l->path, 0, 0}, "defaults.%s: is above that of maximum", name);
}

/* What nobody has written gives way to the maximum; what somebody has is told. */
static void judge_defaults(struct config *c, const struct sandbox_limits *usual, struct loader *l)
{
	struct sandbox_limits unwritten = *usual;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint64_t *low = value_of(&c->defaults, &limits[i]), high = *value_of(&c->maximum, &limits[i]);
		if (*low > high && *low != *value_of(&unwritten, &limits[i]))
			tell_too_high(l, limits[i].name);
		else if (*low > high)
			*low = high;
	}
	if (c->defaults.cpu > c->maximum.cpu && c->defaults.cpu > usual->cpu)
		tell_too_high(l, "cpu");
	else if (c->defaults.cpu > c->maximum.cpu)
		c->defaults.cpu = c->maximum.cpu;
}

/* As if somebody had asked for just them. */
static void judge_ranges(const struct config *c, struct loader *l)
{
	json_t *errors = json_array(), *nothing = json_object(), *over = json_array();
	json_t *spec = create_spec(c, nothing, over);
	json_t *body = spec ? json_pack("{s:O, s:O}", "limits", json_object_get(spec, "limits"), "lifetime_seconds",
					json_object_get(spec, "lifetime_seconds"))
			    : NULL;
	if (body)
		create_check(body, errors);
	tell(l, "defaults and maximum", "", errors);
	json_decref(errors);
	json_decref(nothing);
	json_decref(over);
	json_decref(spec);
	json_decref(body);
}

/* ---- profiles ---- */

static void judge_text(const struct config *c, const char *text, enum policy_kind kind, json_t *errors)
{
	char path[64];
	struct policy_facts facts = {.sources = NULL};
	int fd = memfd_create("policy", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0 && write_all(fd, text, strlen(text)))
		policy_check(c, path, kind, &facts, errors);
	else
		errors_add(errors, NULL, "its policy can't be checked now");
	policy_facts_free(&facts);
	if (fd >= 0)
		close(fd);
}

/* Its shape was told before, if that is what is wrong. */
static void judge_profile(const struct config *c, const char *name, const json_t *profile, json_t *errors)
{
	enum policy_kind kind;
	json_t *shape = json_array(), *body = json_pack("{s:s}", "profile", name);
	create_check(profile, shape);
	json_t *full = json_array_size(shape) == 0 ? create_with_profile(c, body, errors) : NULL;
	json_t *spec = full ? create_spec(c, full, errors) : NULL;
	char *text = spec ? policy_text(c, full, &kind, errors) : NULL;
	if (text)
		judge_text(c, text, kind, errors);
	free(text);
	json_decref(spec);
	json_decref(full);
	json_decref(body);
	json_decref(shape);
}

/* As cage-aci would say it, once it is too late (aci/standby.c). NULL: nothing is against them. */
static const char *why_no_pools(void)
{
	const char *topology = words_option(&aci_maker.options, "--topology");
	const char *sku = words_option(&aci_maker.options, "--sku");
	if (topology && strcmp(topology, "split") == 0)
		return "there are no pools of the topology split";
	if (sku && strcmp(sku, "Confidential") == 0)
		return "there are no pools of confidential groups";
	return words_option(&aci_maker.options, "--registry-username")
		       ? "the profile of a pool would keep the registry's password"
		       : NULL;
}

static void judge_pool(const struct config *c, const char *name, struct where at, struct loader *l)
{
	const char *why = why_no_pools();
	if (why)
		error_at(l->errs, at, "profiles.%s: warm: %s", name, why);
	if (json_object_get(json_object_get(c->profiles, name), "secrets"))
		error_at(l->errs, at,
			 "profiles.%s: warm: values of secrets are not given to groups of a pool, since Azure shows "
			 "what they are given; let the policy take them from a key vault",
			 name);
}

static struct where warm_at(const struct config *c, const char *profile, const struct loader *l)
{
	const json_t *at = json_object_get(c->warm_at, profile);
	return (struct where){l->path, (unsigned)json_integer_value(json_array_get(at, 0)),
			      (unsigned)json_integer_value(json_array_get(at, 1))};
}

/* Each takes memory and processes, whether anybody asks for it or not. */
static void judge_warm(const struct config *c, struct loader *l)
{
	const char *name;
	json_t *wanted;
	json_int_t all = 0;
	json_object_foreach(c->warm, name, wanted)
	{
		all += json_integer_value(wanted);
		if (json_object_get(json_object_get(c->profiles, name), "image"))
			error_at(l->errs, warm_at(c, name, l),
				 "profiles.%s: warm: a room of an image is made for the create that asks for it", name);
		if (pools_has(c, name))
			judge_pool(c, name, warm_at(c, name, l), l);
	}
	if (all > LIMIT_SERVE_WARM_ALL)
		error_at(l->errs, (struct where){l->path, 0, 0}, "profiles: warm: expected at most %d of all profiles",
			 LIMIT_SERVE_WARM_ALL);
}

void config_judge(struct config *c, const struct sandbox_limits *usual, struct loader *l)
{
	const char *name;
	json_t *profile;
	judge_directory("policies", c->policies, l);
	judge_directory("signatures", c->signatures, l);
	judge_defaults(c, usual, l);
	judge_ranges(c, l);
	judge_warm(c, l);
	json_object_foreach(c->profiles, name, profile)
	{
		json_t *errors = json_array();
		judge_profile(c, name, profile, errors);
		tell(l, "profiles.", name, errors);
		json_decref(errors);
	}
}
