/* The name of an image. Promises: what is taken is its registry, a slash, its repository, '@' and its digest, byte by byte; there is
 * nothing in it that a shell, a URL or another reader of such names could take for something else; and it is bounded. */
#include "orchestrator/image/reference.h"
#include "core/policy/image_name.h"
#include "tests/fuzz/fuzz.h"

static void must_be_plain(struct slice s, const char *more)
{
	PROMISE(s.len > 0);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		PROMISE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(more, c)));
	}
	PROMISE(s.ptr[0] != '-' && s.ptr[0] != '.' && s.ptr[0] != '/' && s.ptr[s.len - 1] != '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = fuzz_copy(slice_of(data, size));
	struct image_reference r;
	const char *why = NULL;
	char again[LIMIT_IMAGE_REFERENCE + 1];
	enum image_form form = image_reference_parse(text, &r, &why);
	PROMISE((form == IMAGE_FORM_GOOD) == !why);
	if (form != IMAGE_FORM_MALFORMED)
		PROMISE(text.len <= LIMIT_IMAGE_REFERENCE);
	if (form == IMAGE_FORM_GOOD) {
		must_be_plain(r.registry, ".-:");
		must_be_plain(r.repository, "._-/");
		PROMISE(r.digest.len == IMAGE_DIGEST_LEN);
		int n = snprintf(again, sizeof(again), "%.*s/%.*s@%.*s", SLICE_FMT(r.registry), SLICE_FMT(r.repository),
				 SLICE_FMT(r.digest));
		PROMISE(n > 0 && slice_eq(slice_of(again, (size_t)n), text));
		PROMISE(slice_eq(r.name, slice_head(text, r.registry.len + 1 + r.repository.len)));
	}
	fuzz_free(&text);
	return 0;
}
