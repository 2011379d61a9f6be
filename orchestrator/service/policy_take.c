/* A policy by its name is read, copied and loaded in a process of its own: it may have 8 MiB, and the loop has others to serve. What
 * was found comes back as one line of JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "orchestrator/service/check.h"
#include "orchestrator/service/policies.h"

/* ---- there ---- */

static int status_of_errno(void)
{
	return errno == ENOSPC || errno == EDQUOT ? 507 : 503;
}

static int take(const struct config *c, const char *name, const char *dir, struct policy_facts *facts, json_t *errors)
{
	char path[BACKEND_PATH];
	enum policy_kind kind;
	json_t *full = json_pack("{s:{s:s}}", "policy", "name", name);
	char *text = full ? policy_text(c, full, &kind, errors) : NULL;
	int status = text ? 0 : 422;
	snprintf(path, sizeof(path), "%s/policy.yaml", dir);
	if (text && !policy_write(dir, "policy.yaml", text))
		status = status_of_errno();
	if (status == 0 && !policy_check(c, path, POLICY_GIVEN, facts, errors))
		status = 422;
	free(text);
	json_decref(full);
	return status;
}

/* words: NAME DIR; a name has no blank. */
static int take_in_child(const char *words, const void *config)
{
	char name[LIMIT_SANDBOX + 1];
	struct slice rest = slice_str(words), first = slice_cut(&rest, ' ');
	struct policy_facts facts = {.sources = NULL};
	json_t *errors = json_array();
	snprintf(name, sizeof(name), "%.*s", SLICE_FMT(first));
	int status = take(config, name, words + first.len + 1, &facts, errors);
	json_t *out = json_pack("{s:i, s:s, s:o, s:o}", "status", status, "sha", facts.sha, "errors", errors, "sources",
				facts.sources ? facts.sources : json_object());
	bool ok = out && json_dumpf(out, stdout, JSON_COMPACT) == 0 && fflush(stdout) == 0;
	json_decref(out);
	return ok ? 0 : 1;
}

/* ---- here ---- */

bool policy_take(const struct config *c, struct children *children, const char *name, const char *dir, child_done *done,
		 void *arg)
{
	char words[BACKEND_PATH + LIMIT_SANDBOX];
	snprintf(words, sizeof(words), "%s %s", name, dir);
	const struct child_spec spec = {.function = take_in_child, .text = words, .with = c, .done = done, .arg = arg};
	return child_run(children, &spec);
}

int policy_taken(int status, struct slice said, struct policy_facts *facts, json_t *errors)
{
	bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0 && said.len > 0;
	json_t *out = ended ? json_loadb(said.ptr, said.len, 0, NULL) : NULL;
	const char *sha = json_string_value(json_object_get(out, "sha"));
	int result = sha ? (int)json_integer_value(json_object_get(out, "status")) : 503;
	json_array_extend(errors, json_object_get(out, "errors"));
	if (result == 0) {
		snprintf(facts->sha, sizeof(facts->sha), "%s", sha);
		facts->sources = json_incref(json_object_get(out, "sources"));
	}
	json_decref(out);
	return result;
}
