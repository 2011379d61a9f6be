/* A policy of a request is obeyed with the rights of the gateway: it may name no file and no program of its machine, and secrets only as
 * the gateway's own policy has them, which is its ceiling then (THREATS T37). */
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "orchestrator/gateway/gateway.h"
#include "orchestrator/service/ceiling.h"
#include "orchestrator/service/foreign.h"

static void add_errors(const struct policy_errors *errs, struct words *out)
{
	for (size_t i = 0; i < errs->n && out->n < LIMIT_GATEWAY_ERRORS; i++)
		words_add(out, "policy.yaml:%u:%u: %s", errs->list[i].line, errs->list[i].column, errs->list[i].text);
	if (errs->n == 0)
		words_add(out, "policy.yaml: it can't be read");
}

static void add_details(const json_t *details, struct words *out)
{
	size_t i;
	json_t *one;
	json_array_foreach(details, i, one)
	{
		if (out->n < LIMIT_GATEWAY_ERRORS)
			words_add(out, "policy.yaml: %s", json_string_value(json_object_get(one, "detail")));
	}
}

static bool has_vault(const struct policy *p, struct words *out)
{
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from == SECRET_KEYVAULT) {
			words_add(out, "policy.yaml: secret %.*s: a gateway of many sandboxes reads no key vault",
				  SLICE_FMT(p->secrets[i].id));
			return true;
		}
	return false;
}

/* With secrets, all of it has to lie below what the gateway's own policy lets out: else a rule could send them elsewhere. */
static bool judge_secrets(const struct gateway *g, const struct policy *p, struct words *errors)
{
	json_t *details = json_array();
	const bool ok = p->n_secrets == 0 ||
			(details && g->own && !has_vault(p, errors) && ceiling_check(g->own, p, POLICY_GIVEN, details));
	add_details(details, errors);
	json_decref(details);
	return ok;
}

bool judge_policy(const struct gateway *g, struct slice text, const char *path, struct words *errors)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs)
		return false;
	arena_init(&arena, LIMIT_POLICY_REGION);
	foreign_check(text, errs);
	foreign_check_patterns(text, errs);
	bool ok = errs->n == 0 && errs->more == 0;
	const struct policy *p = ok ? policy_load(path, &arena, clock_wall_s(), &ceiling_readers, errs) : NULL;
	ok = p && judge_secrets(g, p, errors);
	if (!p)
		add_errors(errs, errors);
	arena_free(&arena);
	free(errs);
	return ok && !errors->failed;
}
