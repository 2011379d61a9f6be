/* The gateway's own policy bounds what sandboxes with secrets may have. When it changes, those that are there are judged again: one that
 * lies below it no more keeps its place and its token, and gets a policy that lets nothing out. Whoever made it sees that in the list,
 * and may bring another policy. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/service/ceiling.h"

static struct ceiling *load(const struct gateway *g)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct ceiling *own = errs ? ceiling_load(g->options->policy, errs) : NULL;
	if (!own && errs)
		policy_errors_print(errs, STDERR_FILENO);
	free(errs);
	return own;
}

/* What can't be judged is not good. */
static bool is_good(const struct gateway *g, const char *id, struct words *errors)
{
	static char text[LIMIT_GATEWAY_POLICY + 1];
	char path[LIMIT_GATEWAY_PATH];
	size_t len = 0;
	if (!box_policy(g, id, path, text, sizeof(text), &len))
		return true;
	if (len > 0 && len < sizeof(text))
		return judge_policy(g, slice_of(text, len), path, errors);
	words_add(errors, "policy.yaml: it can't be read");
	return false;
}

/* False: it could not be shut. */
static bool judge_again(struct gateway *g, const char *id, size_t *n_shut)
{
	struct words errors = {0};
	bool ok = is_good(g, id, &errors);
	if (!ok) {
		const char *why = errors.n > 0 ? errors.list[0] : "no memory to judge it";
		say("sandbox %s: its policy does not lie below %s: %s; nothing is let out for it until it gets another",
		    id, g->options->policy, why);
		ok = box_shut(g, id, why);
		++*n_shut;
	}
	words_free(&errors);
	return ok;
}

static bool judge_all(struct gateway *g, size_t *n_shut)
{
	json_t *all = boxes_list(g, NULL);
	size_t i;
	json_t *id;
	bool ok = all != NULL;
	json_array_foreach(all, i, id)
	{
		ok = ok && judge_again(g, json_string_value(id), n_shut);
	}
	json_decref(all);
	return ok;
}

bool own_open(struct gateway *g)
{
	size_t n = 0;
	g->own = load(g);
	if (g->own && judge_all(g, &n))
		return true;
	say("%s: sandboxes can't be judged by it", g->options->policy);
	return false;
}

static void fail(struct gateway *g)
{
	gateway_fail(g, "sandboxes that have more than %s lets them have can't be shut", g->options->policy);
}

enum own_taken own_take(struct gateway *g)
{
	size_t n = 0;
	struct ceiling *now = load(g), *before = g->own;
	if (!now) {
		say("%s: the proxy has taken it, and it can't be read now: write it as a whole, beside it, and rename "
		    "it",
		    g->options->policy);
		return OWN_UNREAD;
	}
	if (strcmp(ceiling_sha(now), ceiling_sha(before)) == 0) {
		ceiling_free(&now);
		return OWN_SAME;
	}
	g->own = now;
	ceiling_free(&before);
	if (!judge_all(g, &n))
		fail(g);
	return n > 0 ? OWN_SHUTS : OWN_NEW;
}

void own_judge(struct gateway *g, const char *id)
{
	size_t n = 0;
	if (box_is_there(g, id) && !judge_again(g, id, &n))
		fail(g);
}
