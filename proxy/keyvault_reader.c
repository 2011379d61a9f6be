/* The reader: a process that lives for one round. Nothing that it gets is kept anywhere but in what it writes to the master. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/write_all.h"
#include "core/policy/keyvault.h"
#include "proxy/keyvault_private.h"
#include "proxy/oauth2_private.h"

#define HTTP_OK 200
#define VAULT_QUERY "?api-version=7.4"
#define BEARER "Bearer "

struct reading {
	const struct keyvault_reader *config;
	struct caller caller;
	struct arena arena;    /* of one secret */
	struct slice resource; /* that the token is for; ptr NULL: there is none */
	struct token_reply token;
	struct slice refused;           /* a resource that there is no token for in this round, ... */
	struct keyvault_record refusal; /* ... and why */
	uint64_t until_us;
	struct keyvault_record record;
};

/* ---- what is told ---- */

/* Words of Azure that say why. No others are shown: whoever answers could put anything there. */
static const char *const known_codes[] = {
	"Forbidden",     "ForbiddenByRbac", "ForbiddenByPolicy", "ForbiddenByFirewall",
	"AccessDenied",  "SecretNotFound",  "SecretDisabled",    "Unauthorized",
	"Throttled",     "invalid_request", "invalid_client",    "unauthorized_client",
	"invalid_grant", "invalid_scope",   "invalid_resource",  "identity_not_found"};

static const char *known_code(struct slice code)
{
	for (size_t i = 0; i < sizeof(known_codes) / sizeof(known_codes[0]); i++)
		if (slice_eq(code, slice_str(known_codes[i])))
			return known_codes[i];
	return NULL;
}

/* {"error": CODE} of token services, {"error": {"code": CODE, "innererror": {"code": CODE}}} of vaults. */
static const char *code_of(struct slice body)
{
	json_t *json = secret_json_load(body);
	const json_t *error = json_object_get(json, "error");
	const char *code = known_code(secret_json_text(json_object_get(error, "innererror"), "code"));
	if (!code)
		code = known_code(secret_json_text(error, "code"));
	if (!code)
		code = known_code(secret_json_text(json, "error"));
	if (json)
		secret_json_free(&json);
	return code;
}

static bool may_be_better(const struct call_answer *a)
{
	if (a->status == 0)
		return !a->is_lasting;
	return a->status == 408 || a->status == 410 || a->status == 429 || a->status >= 500;
}

static const char *hint_for_vault(int status)
{
	if (status >= 300 && status < 400)
		return "; redirects are not followed";
	if (status == 401)
		return "; is the identity of the vault's tenant?";
	if (status == 403)
		return "; does the identity have the role Key Vault Secrets User, and the vault let this network in?";
	return status == 404 ? "; is there a secret of that name?" : "";
}

static const char *hint_for_identity(int status)
{
	if (status >= 300 && status < 400)
		return "; redirects are not followed";
	return status >= 400 && status < 500 && status != 404 && status != 429
		       ? "; is there a managed identity, and is it the one of AZURE_CLIENT_ID?"
		       : "";
}

/* What became of a call that did not bring what it should. */
static void note(struct reading *r, const char *who, const struct call_answer *a, const char *hint)
{
	struct keyvault_record *out = &r->record;
	const char *code = a->status ? code_of(a->body) : NULL;
	out->outcome = may_be_better(a) ? KEYVAULT_AGAIN : KEYVAULT_REFUSED;
	out->status = (uint32_t)a->status;
	out->wait_s = a->wait_s;
	if (a->status == 0)
		snprintf(out->why, sizeof(out->why), "%s %s", who, a->why);
	else
		snprintf(out->why, sizeof(out->why), "%s answered with status %d%s%s%s%s", who, a->status,
			 code ? " (" : "", code ? code : "", code ? ")" : "", hint);
}

static void note_fault(struct reading *r, const char *fault, int status)
{
	r->record.outcome = KEYVAULT_REFUSED;
	r->record.status = (uint32_t)status;
	snprintf(r->record.why, sizeof(r->record.why), "%s", fault);
}

/* The master is gone or does not listen: nobody needs us. */
static void tell(struct reading *r, struct slice value)
{
	r->record.len = (uint32_t)value.len;
	if (!write_all(r->config->out, (const char *)&r->record, sizeof(r->record)) ||
	    !write_all(r->config->out, value.ptr, value.len))
		_exit(1);
}

/* ---- the token ---- */

static void drop_token(struct reading *r)
{
	if (r->token.json)
		token_reply_free(&r->token);
	r->resource = SLICE_NONE;
}

/* False with a note. */
static bool ask_for_token(struct reading *r, struct slice resource)
{
	struct call_request request;
	drop_token(r);
	const char *fault = identity_request(resource, &r->arena, &request);
	if (fault) {
		note_fault(r, fault, 0);
		return false;
	}
	struct call_answer a = call(&r->caller, &request);
	if (a.status != HTTP_OK) {
		note(r, "there is no token: the identity service", &a, hint_for_identity(a.status));
		if (a.status == 404)
			r->record.outcome = KEYVAULT_AGAIN; /* that of a machine which has just been started */
		return false;
	}
	fault = token_reply_read(a.body, &r->token);
	OPENSSL_cleanse(r->caller.room, LIMIT_KEYVAULT_ANSWER);
	if (fault)
		note_fault(r, fault, a.status);
	else
		r->resource = resource;
	return !fault;
}

/* The same. Who has refused once in a round is not asked for each secret again. */
static bool get_token(struct reading *r, struct slice resource)
{
	const unsigned index = r->record.index;
	if (r->resource.ptr && slice_eq(r->resource, resource))
		return true;
	if (r->refused.ptr && slice_eq(r->refused, resource)) {
		r->record = r->refusal;
		r->record.index = index;
		return false;
	}
	if (ask_for_token(r, resource))
		return true;
	r->refused = resource;
	r->refusal = r->record;
	return false;
}

/* ---- the value ---- */

static bool make_request(struct reading *r, const struct target *vault, struct call_request *out)
{
	size_t room = sizeof(BEARER) + r->token.token.len;
	char *bearer = arena_alloc(&r->arena, room);
	struct text t = text_in(bearer, bearer ? room : 0);
	text_put(&t, SLICE(BEARER));
	text_put(&t, r->token.token);
	*out = (struct call_request){.url = *vault, .field = SLICE("Authorization"), .value = text_slice(&t)};
	out->url.query = SLICE(VAULT_QUERY);
	return text_ok(&t);
}

static void take_value(struct reading *r, const struct call_answer *a)
{
	json_t *json = secret_json_load(a->body);
	struct slice value = secret_json_text(json, "value");
	r->record.status = (uint32_t)a->status;
	if (!value.ptr)
		note_fault(r, "the vault's answer is not JSON with a value in it", a->status);
	else if (value.len == 0 || value.len > LIMIT_SECRET_VALUE)
		note_fault(r, value.len == 0 ? "its value is empty" : "its value is too long", a->status);
	else
		r->record.outcome = KEYVAULT_READ;
	tell(r, r->record.outcome == KEYVAULT_READ ? value : SLICE_NONE);
	if (json)
		secret_json_free(&json);
}

static void ask_vault(struct reading *r, const struct target *vault)
{
	struct call_request request;
	if (!make_request(r, vault, &request)) {
		note_fault(r, "there is no memory to ask for it", 0);
		tell(r, SLICE_NONE);
		return;
	}
	struct call_answer a = call(&r->caller, &request);
	if (a.status == HTTP_OK) {
		take_value(r, &a);
	} else {
		note(r, "the vault", &a, hint_for_vault(a.status));
		tell(r, SLICE_NONE);
	}
	OPENSSL_cleanse(r->caller.room, LIMIT_KEYVAULT_ANSWER);
}

static void read_secret(struct reading *r, unsigned index)
{
	const struct target *vault = r->config->policy->secrets[index].vault;
	struct slice resource = keyvault_resource(vault->host.text);
	r->record = (struct keyvault_record){.index = index};
	if (clock_mono_us() >= r->until_us) {
		r->record.outcome = KEYVAULT_AGAIN;
		snprintf(r->record.why, sizeof(r->record.why), "others took all the time there was");
		tell(r, SLICE_NONE);
	} else if (get_token(r, resource.ptr ? resource : SLICE("https://vault.azure.net"))) {
		ask_vault(r, vault);
	} else {
		tell(r, SLICE_NONE);
	}
	arena_cleanse(&r->arena);
	arena_reset(&r->arena);
}

/* ---- a round ---- */

static struct resolver *make_resolver(struct loop *loop, const struct policy *p)
{
	struct addr_port servers[LIMIT_DNS_SERVERS];
	for (size_t i = 0; i < p->n_resolvers; i++)
		servers[i] = (struct addr_port){p->resolvers[i].addr, p->resolvers[i].port};
	return resolver_new(loop, servers, p->n_resolvers);
}

static bool open_caller(struct caller *c, const struct keyvault_reader *config)
{
	const struct policy *p = config->policy;
	*c = (struct caller){.loop = loop_new(), .policy = p, .self = config->self, .n_self = config->n_self};
	c->tls = tls_client_ctx_new(&p->trust, NULL);
	c->room = malloc(LIMIT_KEYVAULT_ANSWER);
	if (!c->loop || !c->tls || !c->room)
		return false;
	SSL_CTX_set_options(c->tls, SSL_OP_CLEANSE_PLAINTEXT);
	c->resolver = policy_asks_resolvers(p) ? make_resolver(c->loop, p) : NULL;
	return c->resolver || !policy_asks_resolvers(p);
}

_Noreturn void keyvault_reader_run(const struct keyvault_reader *config)
{
	struct reading r = {.config = config, .until_us = clock_mono_us() + LIMIT_KEYVAULT_ROUND_MS * 1000ull};
	if (!open_caller(&r.caller, config))
		_exit(1);
	arena_init(&r.arena, LIMIT_TXN_ARENA);
	for (unsigned i = 0; i < config->policy->n_secrets; i++)
		if (config->wanted >> i & 1)
			read_secret(&r, i);
	drop_token(&r);
	_exit(0);
}
