/* Who is told what of the policy's secrets. A value stands in the environment of cage-proxy alone, which wipes it there as
 * soon as it is read. */
#include "orchestrator/secrets.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/placeholder.h"

/* The variable that --secret names for that secret; NULL: none. */
static const char *given_for(const struct run_options *o, struct slice id)
{
	for (size_t i = 0; i < o->secrets.n; i++) {
		const char *text = o->secrets.list[i], *from = strstr(text, "=env:");
		if (slice_eq(slice_of(text, (size_t)(from - text)), id))
			return from + 5;
	}
	return NULL;
}

static bool has_id(const struct policy *p, const char *text)
{
	struct slice id = slice_of(text, (size_t)(strstr(text, "=env:") - text));
	for (size_t i = 0; i < p->n_secrets; i++)
		if (slice_eq(p->secrets[i].id, id))
			return true;
	return false;
}

/* Each --secret must mean something. */
static bool check_given(const struct run_options *o, const struct policy *p)
{
	for (size_t i = 0; i < o->secrets.n; i++) {
		if (has_id(p, o->secrets.list[i]))
			continue;
		say("--secret %s: the policy has no secret of that id", o->secrets.list[i]);
		return false;
	}
	return true;
}

/* An unset variable is left to cage-proxy, which says what it is needed for. */
static bool share_value(const struct run_options *o, const struct policy_secret *s, struct words *proxy)
{
	const char *name = given_for(o, s->id);
	if (name && s->from != SECRET_ENV) {
		say("--secret %.*s: the policy takes this secret from a %s", SLICE_FMT(s->id),
		    s->from == SECRET_FILE ? "file" : "key vault");
		return false;
	}
	if (s->from != SECRET_ENV)
		return true;
	const char *value = getenv(name ? name : s->source.ptr);
	if (name && !value) {
		say("--secret %.*s=env:%s: the variable is not set", SLICE_FMT(s->id), name);
		return false;
	}
	if (value)
		words_add(proxy, "%.*s=%s", SLICE_FMT(s->source), value);
	return true;
}

static bool share_placeholder(const struct policy_secret *s, const char *sandbox, const unsigned char *key,
			      struct words *room)
{
	char name_room[LIMIT_SECRET_NAME + 1], placeholder_room[PLACEHOLDER_RANDOM];
	struct text name = text_in(name_room, sizeof(name_room));
	struct slice placeholder = placeholder_of(s, slice_str(sandbox), key, placeholder_room);
	placeholder_variable(s, &name);
	if (!placeholder.ptr || !text_ok(&name)) {
		say("no placeholder can be made for the secret %.*s", SLICE_FMT(s->id));
		return false;
	}
	words_add(room, "%.*s=%.*s", SLICE_FMT(text_slice(&name)), SLICE_FMT(placeholder));
	return true;
}

static bool share_all(const struct run_options *o, const struct policy *p, const char *ca_dir, struct words *proxy,
		      struct words *room)
{
	unsigned char key[PLACEHOLDER_KEY];
	if (p->n_secrets == 0)
		return true;
	if (!placeholder_key_load(NULL, ca_dir, key))
		return false;
	bool ok = true;
	for (size_t i = 0; i < p->n_secrets && ok; i++)
		ok = share_value(o, &p->secrets[i], proxy) && share_placeholder(&p->secrets[i], o->sandbox, key, room);
	OPENSSL_cleanse(key, sizeof(key));
	return ok;
}

static void add_files(const struct policy *p, struct own_files *own)
{
	for (const struct policy_file *f = p->files; f; f = f->next)
		own_files_add(own, OWN_POLICY, f->path.ptr);
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].from == SECRET_FILE)
			own_files_add(own, OWN_SECRET, p->secrets[i].source.ptr);
	/* Who has this one can read from the vaults what the proxy reads. */
	const char *identity = getenv("AZURE_FEDERATED_TOKEN_FILE");
	for (size_t i = 0; i < p->n_secrets && identity && identity[0]; i++)
		if (p->secrets[i].from == SECRET_KEYVAULT) {
			own_files_add(own, OWN_SECRET, identity);
			return;
		}
}

int secrets_share(const struct run_options *o, const char *policy, const char *ca_dir, struct words *proxy,
		  struct words *room, struct own_files *own)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs) {
		say("no memory");
		return 1;
	}
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(policy, &arena, clock_wall_s(), NULL, errs);
	bool ok = p && check_given(o, p) && share_all(o, p, ca_dir, proxy, room);
	if (p)
		add_files(p, own);
	else
		policy_errors_print(errs, STDERR_FILENO);
	arena_free(&arena);
	free(errs);
	return ok ? 0 : 2;
}
