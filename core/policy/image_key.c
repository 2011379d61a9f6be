/* PEM is undone here rather than by OpenSSL, which takes whatever stands around it and several blocks in a row. Whether the point
 * lies on the curve is left to it. */
#include "core/policy/image_key.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "core/base/base64.h"
#include "core/base/limits.h"

#define BEGIN "-----BEGIN PUBLIC KEY-----"
#define END "-----END PUBLIC KEY-----"

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct slice trim(struct slice s)
{
	while (s.len > 0 && is_blank(s.ptr[0]))
		s = slice_from(s, 1);
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool image_key_is_pem(struct slice text)
{
	return slice_starts(trim(text), SLICE("-----BEGIN"));
}

/* What stands between both lines, without blanks. */
static struct slice digits_of(struct slice body, char out[LIMIT_IMAGE_KEY])
{
	size_t n = 0;
	for (size_t i = 0; i < body.len; i++)
		if (!is_blank(body.ptr[i]))
			out[n++] = body.ptr[i];
	return slice_of(out, n);
}

static bool is_on_curve(const unsigned char *der)
{
	EVP_PKEY *key = d2i_PUBKEY(NULL, &der, IMAGE_KEY_DER);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return key;
}

const char *image_key_parse(struct slice pem, unsigned char out[IMAGE_KEY_DER])
{
	/* id-ecPublicKey, prime256v1, a bit string with an uncompressed point */
	static const unsigned char head[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
					     0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
					     0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
	char digits[LIMIT_IMAGE_KEY];
	unsigned char der[LIMIT_IMAGE_KEY];
	size_t n;
	struct slice text = trim(pem);
	if (text.len > LIMIT_IMAGE_KEY || text.len < sizeof(BEGIN END) - 1 || !slice_starts(text, SLICE(BEGIN)) ||
	    !slice_ends(text, SLICE(END)))
		return "is not one public key in PEM (-----BEGIN PUBLIC KEY-----)";
	struct slice body = slice_from(slice_head(text, text.len - (sizeof(END) - 1)), sizeof(BEGIN) - 1);
	if (!base64_read(digits_of(body, digits), der, sizeof(der), &n))
		return "is not one public key in PEM: what stands in it is no base64";
	if (n != IMAGE_KEY_DER || memcmp(der, head, sizeof(head)) != 0 || !is_on_curve(der))
		return "is no ECDSA key on the curve P-256, and no other is taken";
	memcpy(out, der, IMAGE_KEY_DER);
	return NULL;
}
