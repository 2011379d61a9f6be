/* Texts of policies. */
#include "orchestrator/service/policies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/policy/policy.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/foreign.h"
#include "orchestrator/service/policy_keys.h"
#include "orchestrator/service/seal.h"
#include "orchestrator/words.h"

/* ---- made ---- */

static json_t *rules_of(const json_t *names)
{
	size_t i;
	json_t *name, *rules = json_array();
	json_array_foreach(names, i, name)
	{
		char id[32];
		snprintf(id, sizeof(id), "allow-%zu", i + 1);
		json_array_append_new(rules, json_pack("{s:s, s:[O]}", "id", id, "hosts", name));
	}
	return rules;
}

/* JSON is YAML. */
static char *make(const char *name, const json_t *names)
{
	json_t *policy = json_pack("{s:i, s:s}", "version", 1, "name", name);
	if (policy && json_array_size(names) > 0)
		json_object_set_new(policy, "rules", rules_of(names));
	char *text = policy ? json_dumps(policy, JSON_INDENT(1) | JSON_ENSURE_ASCII) : NULL;
	json_decref(policy);
	return text;
}

/* ---- errors ---- */

/* "rules[3].hosts[0]: ..." of a policy that we have made is the fourth name of the list. */
static void add_error(const struct policy_error *e, enum policy_kind kind, json_t *errors)
{
	char pointer[64], detail[600];
	struct slice rest = slice_from(slice_str(e->text), strlen("rules["));
	uint64_t n;
	if (kind == POLICY_MADE && slice_to_u64(slice_cut(&rest, ']'), LIMIT_POLICY_RULES, &n)) {
		const char *text = strstr(e->text, ": ");
		snprintf(pointer, sizeof(pointer), "/network/domain_allowlist/%llu", (unsigned long long)n);
		errors_add(errors, pointer, text ? text + 2 : e->text);
		return;
	}
	snprintf(detail, sizeof(detail), "policy:%u:%u: %s", e->line, e->column, e->text);
	errors_add(errors, NULL, detail);
}

/* ---- named ---- */

static char *read_whole(int fd, size_t size)
{
	char *text = malloc(size + 1);
	size_t len = 0;
	ssize_t n = 1;
	while (text && len < size && (n = read(fd, text + len, size - len)) > 0)
		len += (size_t)n;
	if (!text || n < 0) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

static char *read_named(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size <= LIMIT_POLICY_FILE;
	char *text = is_file ? read_whole(fd, (size_t)st.st_size) : NULL;
	if (fd >= 0)
		close(fd);
	return text;
}

static char *with_keys(const char *text, const char *path, json_t *errors)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	char *out = errs ? policy_with_keys(text, path, errs) : NULL;
	for (size_t i = 0; errs && i < errs->n; i++)
		add_error(&errs->list[i], POLICY_GIVEN, errors);
	free(errs);
	return out;
}

static char *named(const struct config *c, const char *name, json_t *errors)
{
	char path[CONFIG_PATH + 80];
	snprintf(path, sizeof(path), "%s/%s.yaml", c->policies, name);
	char *text = c->policies[0] && name[0] != '.' ? read_named(path) : NULL;
	if (!text) {
		errors_add(errors, "/policy/name", "there is no policy of that name");
		return NULL;
	}
	char *whole = with_keys(text, path, errors);
	free(text);
	return whole;
}

/* ---- in a request ---- */

static bool is_clear(const char *text, void (*check)(struct slice, struct policy_errors *), json_t *errors)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	if (!errs)
		return false;
	check(slice_str(text), errs);
	for (size_t i = 0; i < errs->n; i++)
		add_error(&errs->list[i], POLICY_GIVEN, errors);
	bool ok = errs->n == 0 && errs->more == 0;
	free(errs);
	return ok;
}

bool policy_may_come(const char *text, json_t *errors)
{
	return is_clear(text, foreign_check, errors);
}

bool policy_may_let_in(const struct config *c, const json_t *body, json_t *errors)
{
	const char *text = json_string_value(json_object_get(json_object_get(body, "policy"), "inline"));
	return c->ceiling || !text || is_clear(text, foreign_check_images, errors);
}

char *policy_text(const struct config *c, const json_t *full, enum policy_kind *kind, json_t *errors)
{
	const json_t *policy = json_object_get(full, "policy"), *network = json_object_get(full, "network");
	const char *mode = json_string_value(json_object_get(network, "mode"));
	const char *text = json_string_value(json_object_get(policy, "inline"));
	*kind = policy ? POLICY_GIVEN : POLICY_MADE;
	if (text)
		return policy_may_come(text, errors) ? strdup(text) : NULL;
	if (policy)
		return named(c, json_string_value(json_object_get(policy, "name")), errors);
	if (mode && strcmp(mode, "allowlist") == 0)
		return make("allowlist", json_object_get(network, "domain_allowlist"));
	return make("none", NULL);
}

/* ---- written ---- */

bool policy_write(const char *dir, const char *name, const char *text)
{
	char path[CONFIG_PATH + 200], part[CONFIG_PATH + 210];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(part, sizeof(part), "%s.part", path);
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	ssize_t len = (ssize_t)strlen(text);
	bool ok = write(fd, text, (size_t)len) == len && fsync(fd) == 0;
	int why = errno;
	close(fd);
	ok = ok && rename(part, path) == 0;
	if (!ok && why)
		errno = why;
	return ok;
}

/* ---- checked ---- */

/* Names of variables, for those that have one. */
static json_t *sources_of(const struct policy *p)
{
	json_t *out = json_object();
	for (size_t i = 0; i < p->n_secrets && out; i++) {
		const struct policy_secret *s = &p->secrets[i];
		json_object_setn_new(out, s->id.ptr, s->id.len,
				     s->from == SECRET_ENV ? json_stringn(s->source.ptr, s->source.len) : json_null());
	}
	return out;
}

void policy_facts_free(struct policy_facts *facts)
{
	json_decref(facts->sources);
	*facts = (struct policy_facts){.sources = NULL};
}

bool policy_check(const struct config *c, const char *path, enum policy_kind kind, struct policy_facts *facts,
		  json_t *errors)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs)
		return false;
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(path, &arena, clock_wall_s(), &ceiling_readers, errs);
	for (size_t i = 0; i < errs->n; i++)
		add_error(&errs->list[i], kind, errors);
	bool ok = p && ceiling_check(c->ceiling, p, kind, errors);
	if (ok) {
		memcpy(facts->sha, p->sha, sizeof(facts->sha));
		facts->sources = sources_of(p);
	}
	arena_free(&arena);
	free(errs);
	return ok;
}

/* ---- tried ---- */

/* Each value by the name of the variable that the policy takes it from. */
static bool add_secret(const struct config *c, const struct policy_trial *t, size_t i, struct words *env,
		       json_t *errors)
{
	struct seal_value value;
	char pointer[32];
	const char *id = json_string_value(json_array_get(t->secrets, i));
	const json_t *source = json_object_get(t->facts->sources, id);
	snprintf(pointer, sizeof(pointer), "/secrets/%zu", i);
	if (!source && t->may_lack)
		return true;
	if (!json_is_string(source)) {
		errors_add(
			errors, pointer,
			source ? "the policy takes it from a file: only those with from: {env: NAME} can be asked for"
			       : "the policy has none of that id");
		return false;
	}
	enum seal_result found = seal_read(c->state, id, &value);
	if (found == SEAL_FOUND)
		words_add(env, "%s=%.*s", json_string_value(source), (int)value.len, value.bytes);
	else
		errors_add(errors, pointer, "no value of that name is kept; cage secret set");
	seal_value_wipe(&value);
	return found == SEAL_FOUND;
}

enum trial_start policy_try(const struct config *c, struct children *children, const struct policy_trial *t,
			    json_t *errors)
{
	struct words env = {0};
	bool ok = true;
	char *argv[] = {"cage-proxy", "--policy", (char *)t->path, "--check", NULL};
	for (size_t i = 0; i < json_array_size(t->secrets); i++)
		ok = add_secret(c, t, i, &env, errors) && ok;
	const struct child_spec spec = {.program = "cage-proxy",
					.argv = argv,
					.envp = env.list,
					.hears_errors = true,
					.done = t->done,
					.arg = t->arg};
	bool began = ok && !env.failed && child_run(children, &spec);
	words_wipe(&env);
	return !ok ? TRIAL_SECRET : began ? TRIAL_BEGAN : TRIAL_BUSY;
}

void policy_read_errors(struct slice said, const char *path, json_t *errors)
{
	while (said.len > 0) {
		char detail[600];
		struct slice line = slice_cut(&said, '\n');
		if (slice_starts(line, slice_str(path)))
			snprintf(detail, sizeof(detail), "policy%.*s", SLICE_FMT(slice_from(line, strlen(path))));
		else
			snprintf(detail, sizeof(detail), "%.*s", SLICE_FMT(line));
		for (char *at = detail; *at; at++)
			if (*at < 0x20 || *at > 0x7e)
				*at = '?';
		if (slice_ends(line, SLICE(": it is not set"))) /* each that the policy has must be asked for */
			strncat(detail, "; ask for it with --secret ID (`secrets` of the request)",
				sizeof(detail) - strlen(detail) - 1);
		if (line.len > 0)
			errors_add(errors, NULL, detail);
	}
}
