/* A transaction and the secrets of its rule: which may go where is planned before anybody looks at the request, and they are
 * put in after everybody has. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "proxy/keyring.h"
#include "proxy/oauth2.h"
#include "proxy/sign.h"
#include "proxy/txn.h"
#include "proxy/vault.h"

/* ---- before ---- */

/* May the rule's secrets go into this request at all? Host, SNI and CONNECT agree, or it would not have come here; only an
 * address of the rule is dialled. */
static bool may_have_secrets(const struct txn *t)
{
	const struct policy_rule *rule = t->verdict.applies;
	if (!rule || rule->action != RULE_ALLOW || t->req.form == TARGET_AUTHORITY)
		return false;
	return t->target.scheme == SCHEME_HTTPS || rule->plaintext;
}

static size_t index_of(const struct txn *t, const struct policy_secret *s)
{
	return (size_t)(s - t->gen->policy->secrets);
}

/* Messages are text by themselves. */
static bool may_change_body(const struct txn *t)
{
	return t->ws || inject_may_change_body(&t->req);
}

static bool list_secrets(struct txn *t)
{
	const struct policy_rule *rule = t->verdict.applies;
	struct inject_secret *list = arena_array(&t->arena, rule->n_secrets, sizeof(*list));
	struct slice *in_body = arena_array(&t->arena, rule->n_secrets, sizeof(*in_body));
	if (!list || !in_body)
		return false;
	for (size_t i = 0; i < rule->n_secrets; i++) {
		const struct policy_secret *s = rule->secrets[i];
		list[i] = (struct inject_secret){s, t->placeholders[index_of(t, s)]};
		if (s->in_body && secret_is_put_in(s) && may_change_body(t))
			in_body[t->n_body_placeholders++] = list[i].placeholder;
	}
	t->body_placeholders = in_body;
	t->plan.secrets = list;
	t->plan.n_secrets = rule->n_secrets;
	return true;
}

enum reason txn_plan_secrets(struct txn *t, const char **detail)
{
	t->plan = (struct inject_plan){.head = &t->req, .target = &t->target};
	if (!t->gen->keyring)
		return REASON_NONE;
	t->placeholders = keyring_placeholders(t->gen->keyring, t->conn->sandbox, &t->arena);
	if (!t->placeholders)
		return REASON_INTERNAL;
	if (!may_have_secrets(t) || t->verdict.applies->n_secrets == 0)
		return REASON_NONE;
	if (!list_secrets(t))
		return REASON_INTERNAL;
	const struct inject_secret *list = t->plan.secrets;
	return inject_plan(list, t->plan.n_secrets, &t->req, &t->target, &t->arena, &t->plan, detail);
}

/* ---- values ---- */

static bool is_signed_by_aws(const struct txn *t)
{
	const struct field *f = message_field(&t->req, SLICE("authorization"));
	struct slice query = t->target.query;
	return (f && slice_starts(f->value, SLICE("AWS4-"))) ||
	       (query.len > 0 && memmem(query.ptr, query.len, "X-Amz-Signature=", 16));
}

/* Does this request need the value of that secret? */
static bool needs(const struct txn *t, size_t i)
{
	const struct policy_secret *s = t->plan.secrets[i].secret;
	switch (s->use) {
	case SECRET_SIGV4:
		return s->require || is_signed_by_aws(t);
	case SECRET_HMAC:
		return true;
	case SECRET_AS_IS:
	case SECRET_CREDENTIALS:
	case SECRET_GOOGLE_JWT:
		return (t->plan.used >> i & 1) != 0 || (s->in_body && may_change_body(t));
	}
	return true;
}

enum secrets_answer txn_get_secrets(struct txn *t)
{
	struct vault *vault = t->worker->config->vault;
	enum secrets_answer answer = SECRETS_READY;
	if (t->plan.n_secrets == 0)
		return answer;
	if (!t->values)
		t->values = arena_array(&t->arena, t->plan.n_secrets, sizeof(*t->values));
	if (!t->values)
		return SECRETS_FAILED;
	for (size_t i = 0; i < t->plan.n_secrets; i++) {
		const struct policy_secret *s = t->plan.secrets[i].secret;
		struct slice value;
		if (!needs(t, i))
			continue;
		if (!vault_get(vault, s->slot, &value))
			return SECRETS_FAILED;
		if (s->use != SECRET_CREDENTIALS && s->use != SECRET_GOOGLE_JWT) {
			t->values[i] = value;
			continue;
		}
		struct slice token;
		switch (oauth2_token(t->worker->oauth2, t->gen, s, value, txn_secrets_came, t, &token)) {
		case OAUTH2_READY:
			t->values[i] = token;
			break;
		case OAUTH2_WAIT:
			answer = SECRETS_WAIT;
			break;
		case OAUTH2_FAILED:
			return SECRETS_FAILED;
		}
	}
	return answer;
}

/* ---- putting in ---- */

static void drop_made(struct txn *t)
{
	arena_cleanse(&t->secret_arena);
	arena_reset(&t->secret_arena);
}

/* The fields of the message become our own. */
static bool copy_head(struct txn *t, struct message *head)
{
	struct field *fields = arena_array(&t->secret_arena, head->n_fields + 1, sizeof(*fields));
	if (!fields)
		return false;
	if (head->n_fields > 0)
		memcpy(fields, head->fields, head->n_fields * sizeof(*fields));
	head->fields = fields;
	return true;
}

static bool hash_held(const struct txn *t, unsigned char out[32])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
	for (size_t at = 0; ok && at < t->held.len;) {
		struct slice piece = fifo_at(&t->held, at);
		ok = EVP_DigestUpdate(md, piece.ptr, piece.len) == 1;
		at += piece.len;
	}
	ok = ok && EVP_DigestFinal_ex(md, out, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok;
}

/* All of the body in one piece; ptr NULL without memory. */
static struct slice join_held(const struct txn *t)
{
	char *all = malloc(t->held.len + 1);
	for (size_t at = 0; all && at < t->held.len;) {
		struct slice piece = fifo_at(&t->held, at);
		memcpy(all + at, piece.ptr, piece.len);
		at += piece.len;
	}
	return slice_of(all, all ? t->held.len : 0);
}

static bool covers_body(const struct policy_hmac *h)
{
	for (size_t i = 0; i < h->n_parts; i++)
		if (h->parts[i].what == HMAC_BODY)
			return true;
	return false;
}

static enum reason sign_with_hmac(struct txn *t, size_t i, struct message *head, const struct target *target,
				  const char **detail)
{
	const struct policy_secret *s = t->plan.secrets[i].secret;
	if (!covers_body(s->hmac))
		return sign_hmac(s, t->values[i], SLICE_NONE, head, target, &t->secret_arena, detail);
	if (!h1_body_is_done(&t->body)) {
		*detail = "The body is too large to be signed.";
		return REASON_SECRET_SLOT;
	}
	struct slice body = join_held(t);
	if (!body.ptr)
		return REASON_INTERNAL;
	enum reason r = sign_hmac(s, t->values[i], body, head, target, &t->secret_arena, detail);
	OPENSSL_cleanse((char *)(uintptr_t)body.ptr, body.len);
	free((char *)(uintptr_t)body.ptr);
	return r;
}

static enum reason sign_with_sigv4(struct txn *t, size_t i, struct message *head, struct target *target,
				   const char **detail)
{
	struct sign_body body = {.is_known = h1_body_is_done(&t->body)};
	if (body.is_known && !hash_held(t, body.sha256))
		return REASON_INTERNAL;
	return sign_sigv4(t->plan.secrets[i].secret, t->values[i], &body, head, target, &t->secret_arena, detail);
}

static enum reason sign(struct txn *t, struct message *head, struct target *target, const char **detail)
{
	enum reason r = REASON_NONE;
	for (size_t i = 0; i < t->plan.n_secrets && r == REASON_NONE; i++) {
		const struct policy_secret *s = t->plan.secrets[i].secret;
		if (secret_is_put_in(s) || !needs(t, i))
			continue;
		r = s->use == SECRET_HMAC ? sign_with_hmac(t, i, head, target, detail)
					  : sign_with_sigv4(t, i, head, target, detail);
		t->injected |= (uint64_t)1 << index_of(t, s);
	}
	return r;
}

bool txn_is_signed(const struct txn *t)
{
	for (size_t i = 0; i < t->plan.n_secrets; i++)
		if (!secret_is_put_in(t->plan.secrets[i].secret))
			return true;
	return false;
}

/* Bits by place in the rule's list become bits by index in the policy. */
static void count_injected(const struct txn *t, uint64_t used, uint64_t *injected)
{
	for (size_t i = 0; i < t->plan.n_secrets; i++)
		if (used >> i & 1)
			*injected |= (uint64_t)1 << index_of(t, t->plan.secrets[i].secret);
}

enum reason txn_put_in_secrets(struct txn *t, struct message *head, struct target *target, const char **detail)
{
	if (!t->gen->keyring)
		return REASON_NONE;
	drop_made(t); /* of an earlier try */
	if (!copy_head(t, head))
		return REASON_INTERNAL;
	txn_ask_for_readable(t, head);
	if (t->plan.n_secrets == 0)
		return REASON_NONE;
	if (inject_head(&t->plan, t->values, head, target, &t->secret_arena) != CAGE_OK)
		return REASON_INTERNAL;
	count_injected(t, t->plan.used, &t->injected);
	return sign(t, head, target, detail);
}

/* ---- bodies ---- */

/* What is made anew of what was held. */
struct rewriting {
	struct txn *txn;
	struct fifo *to;
	enum cage_status status;
};

static void held_again(void *arg, struct slice bytes)
{
	struct rewriting *r = arg;
	struct worker *w = r->txn->worker;
	if (w->held + bytes.len > LIMIT_HOLD_BUDGET || fifo_put(r->to, bytes) != CAGE_OK)
		r->status = CAGE_ENOMEM;
	else
		worker_count_held(w, (int64_t)bytes.len);
}

/* What is here as a whole is changed where it is held. *used: what was put in. */
static enum cage_status change_held(struct txn *t, struct fifo *held, enum inject_escape how, uint64_t *used)
{
	struct rewriting r = {.txn = t, .to = held};
	struct body_injector *b = body_injector_new(&t->plan, t->values, how, held_again, &r);
	struct fifo plain = *held;
	enum cage_status st = CAGE_OK;
	if (!b)
		return CAGE_ENOMEM;
	*held = (struct fifo){.carries_secrets = true};
	while (st == CAGE_OK && plain.len > 0) {
		struct slice piece = fifo_front(&plain);
		st = body_injector_feed(b, piece);
		fifo_drop(&plain, piece.len);
		worker_count_held(t->worker, -(int64_t)piece.len);
	}
	worker_count_held(t->worker, -(int64_t)plain.len);
	fifo_clear(&plain);
	if (st == CAGE_OK)
		st = body_injector_end(b);
	*used = body_injector_used(b);
	body_injector_free(&b);
	return st == CAGE_OK ? r.status : st;
}

enum cage_status txn_change_message(struct txn *t, struct fifo *held, enum inject_escape how)
{
	uint64_t used = 0;
	enum cage_status st = change_held(t, held, how, &used);
	count_injected(t, used, &t->injected_late);
	return st;
}

static void sent_on(void *arg, struct slice bytes)
{
	struct txn *t = arg;
	t->bytes_out += txn_write_chunk_secret(t->up->stream, bytes);
}

enum cage_status txn_change_body(struct txn *t)
{
	enum inject_escape how = inject_escape_for(&t->req);
	uint64_t used = 0;
	if (t->n_body_placeholders == 0 || t->body_change != BODY_AS_IS || t->ws)
		return CAGE_OK;
	if (!h1_body_is_done(&t->body)) {
		t->body_injector = body_injector_new(&t->plan, t->values, how, sent_on, t);
		t->body_change = BODY_CHANGES;
		t->req_out = BODY_CHUNKED;
		return t->body_injector ? CAGE_OK : CAGE_ENOMEM;
	}
	t->body_change = BODY_CHANGED;
	enum cage_status st = change_held(t, &t->held, how, &used);
	count_injected(t, used, &t->injected);
	t->req_out_length = t->held.len;
	return st;
}

enum cage_status txn_send_changed(struct txn *t, struct slice piece)
{
	return body_injector_feed(t->body_injector, piece);
}

enum cage_status txn_end_changed(struct txn *t)
{
	return body_injector_end(t->body_injector);
}

uint64_t txn_injected_late(struct txn *t)
{
	if (t->body_change == BODY_CHANGES && t->body_injector)
		count_injected(t, body_injector_used(t->body_injector), &t->injected_late);
	return t->injected_late & ~t->injected;
}

void txn_drop_secrets(struct txn *t)
{
	oauth2_forget(t->worker->oauth2, t);
	body_injector_free(&t->body_injector);
	drop_made(t);
	if (t->redacted)
		arena_cleanse(&t->arena); /* of a response's head, perhaps */
}

/* ---- log ---- */

size_t txn_secret_ids(const struct txn *t, uint64_t bits, struct slice ids[LIMIT_LOG_SECRETS])
{
	size_t n = 0;
	for (size_t i = 0; i < t->gen->policy->n_secrets && n < LIMIT_LOG_SECRETS; i++)
		if (bits >> i & 1)
			ids[n++] = t->gen->policy->secrets[i].id;
	return n;
}
