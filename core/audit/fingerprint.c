/* A keyed hash, so that nobody who reads the log can try values against it. */
#include "core/audit/fingerprint.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

uint64_t audit_fingerprint(struct slice key, struct slice value)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	uint64_t print = 0;
	if (HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)value.ptr, value.len, sum, &len))
		for (size_t i = 0; i < sizeof(print); i++)
			print = print << 8 | sum[i];
	OPENSSL_cleanse(sum, sizeof(sum));
	return print != 0 ? print : 1;
}
