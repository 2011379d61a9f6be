/* The assertion with which a service account of Google asks for a token: a JWT, signed with RS256 with the private key of the
 * account's key file. */
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "core/base/text.h"
#include "proxy/oauth2_private.h"

#define LIFE_S 3600 /* the longest that Google takes */

static const char no_memory[] = "there is no memory for the assertion";

/* ---- base64url ---- */

static size_t base64_room(size_t n)
{
	return (n + 2) / 3 * 4 + 1; /* with the NUL that EVP_EncodeBlock writes */
}

/* Without padding, to the end of t, which has base64_room(). */
static void put_base64url(struct text *t, struct slice plain)
{
	if (base64_room(plain.len) > t->room - t->len) {
		t->overflow = true;
		return;
	}
	char *out = t->ptr + t->len;
	int n = EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)plain.ptr, (int)plain.len);
	for (int i = 0; i < n; i++)
		out[i] = (char)(out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i]);
	while (n > 0 && out[n - 1] == '=')
		n--;
	t->len += (size_t)n;
}

/* ---- what it says ---- */

/* The service, as a URL. */
static void put_url(struct text *t, const struct target *url, struct arena *arena)
{
	text_put(t, SLICE("https://"));
	text_put_json(t, host_header(url, arena));
	text_put_json(t, url->path);
	text_put_json(t, url->query);
}

static void put_member(struct text *t, struct slice name, struct slice value)
{
	if (value.len == 0)
		return;
	text_put(t, SLICE(",\""));
	text_put(t, name);
	text_put(t, SLICE("\":\""));
	text_put_json(t, value);
	text_put_char(t, '"');
}

static void put_claims(struct text *t, const struct policy_oauth2 *conf, struct slice email, int64_t now_s,
		       struct arena *arena)
{
	text_put(t, SLICE("{\"iat\":"));
	text_put_u64(t, (uint64_t)now_s);
	text_put(t, SLICE(",\"exp\":"));
	text_put_u64(t, (uint64_t)now_s + LIFE_S);
	text_put(t, SLICE(",\"aud\":\""));
	put_url(t, &conf->token_url, arena);
	text_put_char(t, '"');
	put_member(t, SLICE("iss"), email);
	put_member(t, SLICE("scope"), conf->scope);
	put_member(t, SLICE("target_audience"), conf->audience);
	text_put_char(t, '}');
}

static void put_header(struct text *t, struct slice key_id)
{
	text_put(t, SLICE("{\"alg\":\"RS256\",\"typ\":\"JWT\""));
	put_member(t, SLICE("kid"), key_id);
	text_put_char(t, '}');
}

/* ---- the signature ---- */

/* NULL: it is not an RSA key. */
static EVP_PKEY *read_key(struct slice pem)
{
	BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	char no_password[] = "";
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, no_password) : NULL;
	BIO_free(bio);
	if (key && !EVP_PKEY_is_a(key, "RSA")) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	return key;
}

/* ptr NULL: it can't be done. */
static struct slice sign_text(EVP_PKEY *key, struct slice text, struct arena *arena)
{
	size_t n = (size_t)EVP_PKEY_get_size(key);
	unsigned char *out = arena_alloc(arena, n);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool ok = out && md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestSign(md, out, &n, (const unsigned char *)text.ptr, text.len) == 1;
	EVP_MD_CTX_free(md);
	return ok ? slice_of(out, n) : SLICE_NONE;
}

/* ---- all of it ---- */

/* Header and claims, in base64url; ptr NULL without memory. */
static struct slice write_text(const struct policy_oauth2 *conf, const json_t *account, int64_t now_s,
			       struct arena *arena)
{
	struct slice key_id = secret_json_text(account, "private_key_id");
	struct slice email = secret_json_text(account, "client_email");
	size_t room = 1024 + 6 * (key_id.len + email.len + conf->scope.len + conf->audience.len +
				  conf->token_url.host.text.len + conf->token_url.path.len + conf->token_url.query.len);
	char *plain = arena_alloc(arena, room), *coded = arena_alloc(arena, 2 * room);
	if (!plain || !coded)
		return SLICE_NONE;
	struct text header = text_in(plain, room), out = text_in(coded, 2 * room);
	put_header(&header, key_id);
	put_base64url(&out, text_slice(&header));
	text_put_char(&out, '.');
	struct text claims = text_in(plain, room);
	put_claims(&claims, conf, email, now_s, arena);
	put_base64url(&out, text_slice(&claims));
	return text_ok(&header) && text_ok(&claims) && text_ok(&out) ? text_slice(&out) : SLICE_NONE;
}

static const char *assert_account(const struct policy_oauth2 *conf, const json_t *account, int64_t now_s,
				  struct arena *arena, struct slice *out)
{
	if (secret_json_text(account, "client_email").len == 0)
		return "the service account's key file has no client_email";
	EVP_PKEY *key = read_key(secret_json_text(account, "private_key"));
	if (!key)
		return "the service account's key file has no RSA key";
	struct slice text = write_text(conf, account, now_s, arena);
	struct slice signature = text.ptr ? sign_text(key, text, arena) : SLICE_NONE;
	EVP_PKEY_free(key);
	if (!signature.ptr)
		return no_memory;
	size_t room = text.len + 1 + base64_room(signature.len);
	char *p = arena_alloc(arena, room);
	if (!p)
		return no_memory;
	struct text t = text_in(p, room);
	text_put(&t, text);
	text_put_char(&t, '.');
	put_base64url(&t, signature);
	*out = text_slice(&t);
	return NULL;
}

const char *google_assertion(const struct policy_oauth2 *conf, struct slice key_file, int64_t now_s,
			     struct arena *arena, struct slice *out)
{
	json_t *account = secret_json_load(key_file);
	if (!account)
		return "the service account's key file is not a JSON object";
	const char *fault = assert_account(conf, account, now_s, arena, out);
	secret_json_free(&account);
	return fault;
}
