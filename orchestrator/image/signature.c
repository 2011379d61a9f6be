/* One signature: over the bytes of the payload as they are, before anybody has read them. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "core/base/base64.h"
#include "orchestrator/image/signatures.h"

static bool verify(EVP_PKEY *key, struct slice payload, const unsigned char *signature, size_t len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestVerify(ctx, signature, len, (const unsigned char *)payload.ptr, payload.len) == 1;
	EVP_MD_CTX_free(ctx);
	return ok;
}

/* The line break at the end of a file is none of it. */
static struct slice without_break(struct slice text)
{
	return slice_ends(text, SLICE("\n")) ? slice_head(text, text.len - 1) : text;
}

bool signature_is_good(struct slice key, struct slice payload, struct slice signature)
{
	unsigned char bytes[BASE64_ROOM(LIMIT_IMAGE_SIGNATURE)];
	const unsigned char *der = (const unsigned char *)key.ptr;
	size_t len;
	if (payload.len == 0 || payload.len > LIMIT_IMAGE_PAYLOAD || signature.len > LIMIT_IMAGE_SIGNATURE ||
	    !base64_read(without_break(signature), bytes, sizeof(bytes), &len) || len == 0)
		return false;
	EVP_PKEY *pkey = d2i_PUBKEY(NULL, &der, (long)key.len);
	bool ok = pkey && verify(pkey, payload, bytes, len);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return ok;
}
