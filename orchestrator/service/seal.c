/* Sealing and opening of values. A file is: the mark, a nonce, the sealed bytes, the tag. The mark and the name are authenticated
 * with them. Nonces are random: one key would have to seal billions of values before two of them meet. */
#include "orchestrator/service/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "core/base/say.h"
#include "core/proc/key_file.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/seal_file.h"
#include "orchestrator/service/state_dir.h"

#define KEY 32
#define NONCE 12
#define TAG 16

static const struct slice mark = WORD("cage.seal/1\n");

#define MARK 12
#define SEALED_MAX (MARK + NONCE + LIMIT_SECRET_VALUE + TAG)

bool seal_name_is_good(struct slice name)
{
	return sandbox_id_is_good(name);
}

#define TEXT(n) #n
#define NUMBER(n) TEXT(n)

const char *seal_value_fault(struct slice value)
{
	if (value.len < LIMIT_SECRET_VALUE_MIN)
		return "is shorter than " NUMBER(LIMIT_SECRET_VALUE_MIN) " bytes";
	if (value.len > LIMIT_SECRET_VALUE)
		return "is longer than 16 KiB";
	return memchr(value.ptr, '\0', value.len) ? "holds a NUL byte" : NULL;
}

/* What is authenticated and not sealed. */
static bool bind_name(EVP_CIPHER_CTX *c,
		      int (*update)(EVP_CIPHER_CTX *, unsigned char *, int *, const unsigned char *, int),
		      const char *name)
{
	int n;
	return update(c, NULL, &n, (const unsigned char *)mark.ptr, (int)mark.len) == 1 &&
	       update(c, NULL, &n, (const unsigned char *)name, (int)strlen(name)) == 1;
}

/* out: SEALED_MAX. How many bytes it took; 0: it failed. */
static size_t seal(const unsigned char key[KEY], const char *name, struct slice value, unsigned char *out)
{
	unsigned char *nonce = out + MARK, *sealed = nonce + NONCE;
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0, last = 0;
	memcpy(out, mark.ptr, MARK);
	bool ok = c && RAND_bytes(nonce, NONCE) == 1 &&
		  EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
		  bind_name(c, EVP_EncryptUpdate, name) &&
		  EVP_EncryptUpdate(c, sealed, &n, (const unsigned char *)value.ptr, (int)value.len) == 1 &&
		  EVP_EncryptFinal_ex(c, sealed + n, &last) == 1 &&
		  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, sealed + value.len) == 1;
	EVP_CIPHER_CTX_free(c);
	return ok ? MARK + NONCE + value.len + TAG : 0;
}

static bool unseal(const unsigned char key[KEY], const char *name, struct slice file, struct seal_value *out)
{
	if (file.len < MARK + NONCE + TAG || !slice_starts(file, mark))
		return false;
	const unsigned char *nonce = (const unsigned char *)file.ptr + MARK, *sealed = nonce + NONCE;
	unsigned char tag[TAG];
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0, last = 0;
	out->len = file.len - MARK - NONCE - TAG;
	memcpy(tag, sealed + out->len, TAG);
	bool ok = c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
		  bind_name(c, EVP_DecryptUpdate, name) &&
		  EVP_DecryptUpdate(c, (unsigned char *)out->bytes, &n, sealed, (int)out->len) == 1 &&
		  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
		  EVP_DecryptFinal_ex(c, (unsigned char *)out->bytes + n, &last) == 1;
	EVP_CIPHER_CTX_free(c);
	if (!ok)
		seal_value_wipe(out);
	return ok;
}

void seal_value_wipe(struct seal_value *v)
{
	OPENSSL_cleanse(v, sizeof(*v));
}

static bool name_is_refused(const char *name)
{
	if (seal_name_is_good(slice_str(name)))
		return false;
	say("the name of a secret is " SANDBOX_ID);
	return true;
}

bool seal_write(const char *state_dir, const char *name, struct slice value)
{
	unsigned char key[KEY], sealed[SEALED_MAX];
	const char *fault = seal_value_fault(value);
	if (name_is_refused(name))
		return false;
	if (fault) {
		say("the value of %s %s", name, fault);
		return false;
	}
	if (!state_dir_make(state_dir) || !key_file_open(state_dir, SEAL_KEY, key, sizeof(key)))
		return false;
	size_t n = seal(key, name, value, sealed);
	OPENSSL_cleanse(key, sizeof(key));
	if (n == 0) {
		say("%s can't be sealed", name);
		return false;
	}
	return seal_file_write(state_dir, name, slice_of(sealed, n));
}

enum seal_result seal_read(const char *state_dir, const char *name, struct seal_value *out)
{
	unsigned char key[KEY];
	char file[SEALED_MAX];
	size_t n;
	if (!seal_name_is_good(slice_str(name)))
		return SEAL_NONE;
	enum seal_result found = seal_file_read(state_dir, name, file, sizeof(file), &n);
	if (found != SEAL_FOUND)
		return found;
	if (!key_file_open(state_dir, SEAL_KEY, key, sizeof(key)))
		return SEAL_FAILED;
	bool ok = unseal(key, name, slice_of(file, n), out);
	OPENSSL_cleanse(key, sizeof(key));
	if (!ok)
		say("the secret %s can't be opened: it was changed, or sealed under another key than " SEAL_KEY, name);
	return ok ? SEAL_FOUND : SEAL_FAILED;
}

enum seal_result seal_remove(const char *state_dir, const char *name)
{
	return seal_name_is_good(slice_str(name)) ? seal_file_remove(state_dir, name) : SEAL_NONE;
}
