/* AWS Signature Version 4: the hash of the request is signed with a key made for the day, region and service, and the signature
 * put where the client's is. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "proxy/sign_private.h"

#define CONTENT_HASH "x-amz-content-sha256"
#define UNSIGNED "UNSIGNED-PAYLOAD"

/* ---- the body ---- */

static struct slice hex_of(const unsigned char sum[SIGN_SHA256], struct arena *arena)
{
	char *out = arena_alloc(arena, SIGN_HEX);
	if (!out)
		return SLICE_NONE;
	struct text t = text_in(out, SIGN_HEX);
	text_put_hex(&t, sum, SIGN_SHA256);
	return text_slice(&t);
}

/* Where the client says what the body's hash is. */
static struct slice declared_hash(const struct signing *s)
{
	size_t n;
	const struct sign_param *p = sign_query_find(&s->query, SLICE("X-Amz-Content-Sha256"), &n);
	if (p)
		return p->value;
	const struct field *f = message_field(s->head, SLICE(CONTENT_HASH));
	return f ? f->value : SLICE_NONE;
}

/* S3 alone takes a body that is not signed: always with a presigned URL, else where the client has said that there is a hash
 * and it is not known. */
static enum reason hash_for(struct signing *s, const struct sign_body *body, struct slice declared, const char **detail)
{
	bool stays_unsigned = declared.len == 0 ? s->claim.in_query : !body->is_known;
	if (stays_unsigned && sign_is_s3(&s->claim))
		s->body_hash = SLICE(UNSIGNED);
	else if (body->is_known)
		s->body_hash = hex_of(body->sha256, s->arena);
	else
		return sign_refuse(detail, "The body is too large to sign.");
	return s->body_hash.ptr ? REASON_NONE : REASON_INTERNAL;
}

static enum reason choose_body_hash(struct signing *s, const struct sign_body *body, const char **detail)
{
	struct slice declared = declared_hash(s);
	if (slice_eq(declared, SLICE(UNSIGNED)) || slice_eq(declared, SLICE("STREAMING-UNSIGNED-PAYLOAD-TRAILER"))) {
		s->body_hash = declared;
		return REASON_NONE;
	}
	if (slice_starts(declared, SLICE("STREAMING-")))
		return sign_refuse(detail, "The body is signed piece by piece, which can't be done anew; turn that off "
					   "in the client.");
	return hash_for(s, body, declared, detail);
}

/* The field and the parameter, where there are such, say what was chosen. */
static bool declare_body_hash(struct signing *s)
{
	size_t n;
	struct sign_param *p = sign_query_find(&s->query, SLICE("X-Amz-Content-Sha256"), &n);
	if (p && !sign_query_set(p, s->body_hash, s->arena))
		return false;
	return !message_field(s->head, SLICE(CONTENT_HASH)) ||
	       sign_set_field(s->head, SLICE(CONTENT_HASH), s->body_hash, s->arena);
}

/* ---- the signature ---- */

static bool hmac(struct slice key, struct slice text, unsigned char out[SIGN_SHA256])
{
	unsigned len = 0;
	return HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)text.ptr, text.len, out, &len) &&
	       len == SIGN_SHA256;
}

/* A key for this day, region and service. */
static bool derive_key(const struct sign_claim *c, struct slice value, unsigned char key[SIGN_SHA256])
{
	const struct slice steps[] = {c->date, c->region, c->service, SLICE("aws4_request")};
	char first[4 + LIMIT_SECRET_VALUE] = "AWS4";
	if (value.len > LIMIT_SECRET_VALUE)
		return false;
	memcpy(first + 4, value.ptr, value.len);
	bool ok = hmac(slice_of(first, 4 + value.len), steps[0], key);
	OPENSSL_cleanse(first, sizeof(first));
	for (size_t i = 1; ok && i < sizeof(steps) / sizeof(steps[0]); i++) {
		unsigned char next[SIGN_SHA256];
		ok = hmac(slice_of(key, SIGN_SHA256), steps[i], next);
		memcpy(key, next, SIGN_SHA256);
		OPENSSL_cleanse(next, sizeof(next));
	}
	return ok;
}

static void put_scope(struct text *t, const struct sign_claim *c)
{
	text_put(t, c->date);
	text_put_char(t, '/');
	text_put(t, c->region);
	text_put_char(t, '/');
	text_put(t, c->service);
	text_put(t, SLICE("/aws4_request"));
}

static size_t scope_room(const struct sign_claim *c)
{
	return c->date.len + c->region.len + c->service.len + sizeof("///aws4_request");
}

static struct slice string_to_sign(const struct signing *s, const unsigned char request[SIGN_SHA256])
{
	size_t room = sizeof("AWS4-HMAC-SHA256\n\n\n") + s->claim.time.len + scope_room(&s->claim) + SIGN_HEX;
	char *out = arena_alloc(s->arena, room);
	struct text t = text_in(out, out ? room : 0);
	text_put(&t, SLICE("AWS4-HMAC-SHA256\n"));
	text_put(&t, s->claim.time);
	text_put_char(&t, '\n');
	put_scope(&t, &s->claim);
	text_put_char(&t, '\n');
	text_put_hex(&t, request, SIGN_SHA256);
	return text_slice(&t);
}

static bool make_signature(struct signing *s, struct slice value)
{
	unsigned char request[SIGN_SHA256], key[SIGN_SHA256], sum[SIGN_SHA256];
	if (!sign_hash_request(s, request))
		return false;
	struct slice text = string_to_sign(s, request);
	bool ok = text.ptr && derive_key(&s->claim, value, key) && hmac(slice_of(key, sizeof(key)), text, sum);
	OPENSSL_cleanse(key, sizeof(key));
	if (!ok)
		return false;
	struct text hex = text_in(s->signature, sizeof(s->signature));
	text_put_hex(&hex, sum, sizeof(sum));
	return true;
}

/* ---- putting it in ---- */

/* "ID/20260131/REGION/SERVICE/aws4_request"; ptr NULL without memory. */
static struct slice credential(const struct signing *s)
{
	size_t room = s->key_id.len + 1 + scope_room(&s->claim);
	char *out = arena_alloc(s->arena, room);
	struct text t = text_in(out, out ? room : 0);
	text_put(&t, s->key_id);
	text_put_char(&t, '/');
	put_scope(&t, &s->claim);
	return text_slice(&t);
}

static bool put_in_field(struct signing *s)
{
	struct slice who = credential(s);
	size_t room =
		sizeof("AWS4-HMAC-SHA256 Credential=, SignedHeaders=, Signature=") + who.len + s->names.len + SIGN_HEX;
	char *out = arena_alloc(s->arena, room);
	if (!who.ptr || !out)
		return false;
	struct text t = text_in(out, room);
	text_put(&t, SLICE("AWS4-HMAC-SHA256 Credential="));
	text_put(&t, who);
	text_put(&t, SLICE(", SignedHeaders="));
	text_put(&t, s->names);
	text_put(&t, SLICE(", Signature="));
	text_put(&t, slice_of(s->signature, SIGN_HEX));
	return sign_set_field(s->head, SLICE("Authorization"), text_slice(&t), s->arena);
}

/* Parameters that the signature covers; each is there once. */
static bool set_signed_params(struct signing *s)
{
	size_t n;
	struct slice who = credential(s);
	return who.ptr && sign_query_set(sign_query_find(&s->query, SLICE("X-Amz-Credential"), &n), who, s->arena) &&
	       sign_query_set(sign_query_find(&s->query, SLICE("X-Amz-SignedHeaders"), &n), s->names, s->arena);
}

static bool put_in_query(struct signing *s)
{
	size_t n;
	struct sign_param *p = sign_query_find(&s->query, SLICE("X-Amz-Signature"), &n);
	if (!sign_query_set(p, slice_of(s->signature, SIGN_HEX), s->arena))
		return false;
	s->target->query = sign_query_write(&s->query, s->arena);
	return s->target->query.ptr != NULL;
}

enum reason sign_sigv4(const struct policy_secret *secret, struct slice value, const struct sign_body *body,
		       struct message *head, struct target *target, struct arena *arena, const char **detail)
{
	struct signing s = {.head = head, .target = target, .arena = arena};
	if (!sign_query_parse(target->query, arena, &s.query))
		return REASON_INTERNAL;
	enum reason r = sign_read_claim(head, &s.query, arena, &s.claim, detail);
	if (r == REASON_NONE)
		r = choose_body_hash(&s, body, detail);
	if (r != REASON_NONE)
		return r;
	bool in_query = s.claim.in_query;
	s.key_id = secret->key_id.len > 0 ? secret->key_id : s.claim.key_id;
	if (!declare_body_hash(&s) || !sign_prepare(&s) || (in_query && !set_signed_params(&s)) ||
	    !make_signature(&s, value))
		return REASON_INTERNAL;
	return (in_query ? put_in_query(&s) : put_in_field(&s)) ? REASON_NONE : REASON_INTERNAL;
}
