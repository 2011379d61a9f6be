/* A field with an HMAC-SHA256 over parts of the request, as a policy describes it. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "core/base/text.h"
#include "proxy/sign_private.h"

/* An HMAC in the making. */
struct mac {
	EVP_MAC_CTX *ctx;
	bool ok;
};

static struct mac mac_new(struct slice key)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
				     OSSL_PARAM_construct_end()};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	struct mac m = {.ctx = hmac ? EVP_MAC_CTX_new(hmac) : NULL};
	m.ok = m.ctx && EVP_MAC_init(m.ctx, (const unsigned char *)key.ptr, key.len, params) == 1;
	EVP_MAC_free(hmac);
	return m;
}

static void mac_put(struct mac *m, struct slice s)
{
	m->ok = m->ok && (s.len == 0 || EVP_MAC_update(m->ctx, (const unsigned char *)s.ptr, s.len) == 1);
}

static bool mac_end(struct mac *m, unsigned char out[SIGN_SHA256])
{
	size_t len = 0;
	bool ok = m->ok && EVP_MAC_final(m->ctx, out, &len, SIGN_SHA256) == 1 && len == SIGN_SHA256;
	EVP_MAC_CTX_free(m->ctx);
	return ok;
}

/* All fields of that name, as one value; false: there is none. */
static bool put_fields(struct mac *m, const struct message *head, struct slice name)
{
	bool found = false;
	for (size_t i = 0; i < head->n_fields; i++) {
		if (!slice_ieq(head->fields[i].name, name))
			continue;
		mac_put(m, found ? SLICE(",") : SLICE_NONE);
		mac_put(m, head->fields[i].value);
		found = true;
	}
	return found;
}

struct signed_request {
	const struct message *head;
	const struct target *target;
	struct slice body, host;
};

/* false: a field is to be signed that the request does not have. */
static bool put_part(struct mac *m, const struct signed_request *r, enum hmac_part what, struct slice name)
{
	switch (what) {
	case HMAC_METHOD:
		mac_put(m, r->head->method);
		return true;
	case HMAC_PATH:
		mac_put(m, r->target->path);
		return true;
	case HMAC_QUERY:
		mac_put(m, slice_from(r->target->query, 1));
		return true;
	case HMAC_HOST:
		mac_put(m, r->host);
		return true;
	case HMAC_BODY:
		mac_put(m, r->body);
		return true;
	case HMAC_HEADER:
		if (slice_eq(name, SLICE("host")))
			mac_put(m, r->host);
		return slice_eq(name, SLICE("host")) || put_fields(m, r->head, name);
	}
	return false;
}

static bool put_parts(struct mac *m, const struct policy_hmac *h, const struct signed_request *r)
{
	for (size_t i = 0; i < h->n_parts; i++) {
		if (i > 0)
			mac_put(m, h->joiner);
		if (!put_part(m, r, h->parts[i].what, h->parts[i].name))
			return false;
	}
	return true;
}

#define BASE64 44 /* bytes of a sum in base64 */

/* The value of the field; ptr NULL without memory. */
static struct slice write_sum(const struct policy_hmac *h, const unsigned char sum[SIGN_SHA256], struct arena *arena)
{
	size_t room = h->prefix.len + SIGN_HEX;
	char *out = arena_alloc(arena, room);
	struct text t = text_in(out, out ? room : 0);
	text_put(&t, h->prefix);
	if (!h->base64) {
		text_put_hex(&t, sum, SIGN_SHA256);
		return text_slice(&t);
	}
	unsigned char coded[BASE64 + 1];
	EVP_EncodeBlock(coded, sum, SIGN_SHA256);
	text_put(&t, slice_of(coded, BASE64));
	return text_slice(&t);
}

enum reason sign_hmac(const struct policy_secret *secret, struct slice value, struct slice body, struct message *head,
		      const struct target *target, struct arena *arena, const char **detail)
{
	const struct policy_hmac *h = secret->hmac;
	struct signed_request r = {head, target, body, host_header(target, arena)};
	unsigned char sum[SIGN_SHA256];
	if (!r.host.ptr)
		return REASON_INTERNAL;
	struct mac m = mac_new(value);
	bool is_whole = put_parts(&m, h, &r);
	bool ok = mac_end(&m, sum);
	if (!is_whole)
		return sign_refuse(detail, "The request lacks a field that is to be signed.");
	struct slice text = ok ? write_sum(h, sum, arena) : SLICE_NONE;
	return text.ptr && sign_set_field(head, h->header, text, arena) ? REASON_NONE : REASON_INTERNAL;
}
