/* What a gateway tells, before any of it is used: it serves many, and may be in the hands of somebody else. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/text.h"
#include "core/proc/placeholder.h"
#include "orchestrator/aci/aci.h"

/* ---- variables ---- */

/* As the policy writes it, or a random one. */
static bool is_its_placeholder(const struct policy_secret *s, struct slice value)
{
	if (s->placeholder.len > 0)
		return slice_eq(value, s->placeholder);
	if (value.len != PLACEHOLDER_RANDOM || !slice_starts(value, SLICE(PLACEHOLDER_PREFIX)))
		return false;
	for (size_t i = sizeof(PLACEHOLDER_PREFIX) - 1; i < value.len; i++)
		if (ascii_hex((unsigned char)value.ptr[i]) < 0)
			return false;
	return true;
}

static bool is_placeholder(const struct policy *p, const char *name, const json_t *value)
{
	const struct slice text = slice_of(json_string_value(value), json_string_length(value));
	for (size_t i = 0; i < p->n_secrets && json_is_string(value); i++) {
		char room[LIMIT_SECRET_NAME];
		struct text t = text_in(room, sizeof(room));
		placeholder_variable(&p->secrets[i], &t);
		if (text_ok(&t) && slice_eq(text_slice(&t), slice_str(name)))
			return is_its_placeholder(&p->secrets[i], text);
	}
	return false;
}

/* Placeholders come last and so count. */
static const char *take_variables(struct aci *a, const struct policy *p, json_t *env)
{
	const char *name;
	json_t *value;
	json_object_foreach(env, name, value)
	{
		if (!is_placeholder(p, name, value)) {
			say("the gateway tells a variable: %s", intake_shown(&a->split.intake, name));
			return "a variable that it tells is no placeholder of the policy";
		}
		words_add(&a->agent_env, "%s=%s", name, json_string_value(value));
	}
	return a->agent_env.failed ? "no memory" : NULL;
}

const char *told_variables(struct aci *a, json_t *env)
{
	struct arena arena;
	if (json_object_size(env) == 0)
		return NULL;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	if (!errs)
		return "no memory";
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(a->options->run.policy, &arena, clock_wall_s(), NULL, errs);
	const char *fault = p ? take_variables(a, p, env) : "it takes a policy that is not good";
	arena_free(&arena);
	free(errs);
	return fault;
}

/* ---- lines ---- */

/* As the log is written: an object in ASCII, which names its sandbox. */
static bool is_line_of(struct slice line, const char *sandbox)
{
	for (size_t i = 0; i < line.len; i++)
		if (line.ptr[i] < 0x20 || line.ptr[i] > 0x7e)
			return false;
	json_t *event =
		line.len > 0 ? json_loadb(line.ptr, line.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *its = json_object_get(event, "sandbox");
	const bool ok = json_is_string(its) &&
			slice_eq(slice_of(json_string_value(its), json_string_length(its)), slice_str(sandbox));
	json_decref(event);
	return ok;
}

struct slice told_lines(const struct aci *a, char *bytes, size_t len)
{
	size_t kept = 0, left_out = 0;
	for (size_t at = 0; at < len;) {
		const struct slice rest = slice_of(bytes + at, len - at);
		const size_t n = slice_find(rest, '\n');
		at += n < rest.len ? n + 1 : n;
		if (n == rest.len || !is_line_of(slice_head(rest, n), a->options->run.sandbox)) {
			left_out++;
			continue;
		}
		memmove(bytes + kept, rest.ptr, n + 1);
		kept += n + 1;
	}
	if (left_out > 0)
		say("%zu lines that the gateway tells as decisions of this sandbox are none: they are left out",
		    left_out);
	return slice_of(bytes, kept);
}
