/* The payload of a signature, and the signature. Promises: what is taken names one image in bounded text, it is about no image but
 * that; and no bytes are a signature by a key that nobody signs with. */
#include "orchestrator/image/payload.h"
#include "orchestrator/image/signatures.h"
#include "tests/fuzz/fuzz.h"

/* The generator of P-256 as a public key: of the private key 1. */
static const unsigned char key[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
				    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
				    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5,
				    0x63, 0xa4, 0x40, 0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4,
				    0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a,
				    0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33,
				    0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = fuzz_copy(slice_of(data, size));
	struct image_claim claim;
	struct image_reference r;
	const char *why = NULL, *fault;
	char name[2 * LIMIT_IMAGE_REFERENCE + 3];
	bool ok = payload_read(text, &claim, &why);
	PROMISE(ok == !why && (!ok || text.len <= LIMIT_IMAGE_PAYLOAD));
	if (ok) {
		PROMISE(memchr(claim.name, 0, sizeof(claim.name)) && memchr(claim.digest, 0, sizeof(claim.digest)));
		snprintf(name, sizeof(name), "%s@%s", claim.name, claim.digest);
		if (image_reference_parse(slice_str(name), &r, &fault) == IMAGE_FORM_GOOD)
			PROMISE(payload_is_about(&claim, &r));
		image_reference_parse(
			SLICE("r.test/a@sha256:0000000000000000000000000000000000000000000000000000000000000000"), &r,
			&fault);
		if (payload_is_about(&claim, &r))
			PROMISE(strcmp(claim.name, "r.test/a") == 0);
	}
	PROMISE(!signature_is_good(slice_of(key, sizeof(key)), text, text));
	PROMISE(!signature_is_good(slice_of(key, sizeof(key)), SLICE("x"), text));
	fuzz_free(&text);
	return 0;
}
