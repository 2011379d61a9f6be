/* A random placeholder is an HMAC: nothing has to be kept but the key. */
#include "core/proc/placeholder.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/proc/key_file.h"

#define RANDOM_BYTES 16

bool placeholder_key_load(const char *keys, const char *ca_dir, unsigned char key[PLACEHOLDER_KEY])
{
	return key_file_get(keys, ca_dir, "placeholder.key", key, PLACEHOLDER_KEY);
}

/* Of sandbox and id with a NUL between them, which neither can have. */
static bool digest(struct slice sandbox, struct slice id, const unsigned char key[PLACEHOLDER_KEY],
		   unsigned char out[EVP_MAX_MD_SIZE])
{
	char buf[LIMIT_SANDBOX + 1 + LIMIT_RULE_ID];
	struct text t = text_in(buf, sizeof(buf));
	unsigned len = 0;
	text_put(&t, sandbox);
	text_put_char(&t, '\0');
	text_put(&t, id);
	return text_ok(&t) && HMAC(EVP_sha256(), key, PLACEHOLDER_KEY, (const unsigned char *)buf, t.len, out, &len) &&
	       len >= RANDOM_BYTES;
}

struct slice placeholder_of(const struct policy_secret *s, struct slice sandbox,
			    const unsigned char key[PLACEHOLDER_KEY], char room[PLACEHOLDER_RANDOM])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	if (s->placeholder.len > 0)
		return s->placeholder;
	if (!digest(sandbox, s->id, key, bytes))
		return SLICE_NONE;
	struct text t = text_in(room, PLACEHOLDER_RANDOM);
	text_put(&t, SLICE(PLACEHOLDER_PREFIX));
	text_put_hex(&t, bytes, RANDOM_BYTES);
	return text_slice(&t);
}

void placeholder_variable(const struct policy_secret *s, struct text *t)
{
	if (s->from == SECRET_ENV) {
		text_put(t, s->source);
		return;
	}
	for (size_t i = 0; i < s->id.len; i++) {
		char c = s->id.ptr[i];
		if (c == '-' || c == '.')
			c = '_';
		else if (c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		text_put_char(t, c);
	}
}
