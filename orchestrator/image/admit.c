/* Each entry of the policy is asked; one that is wholly met is enough, and else the nearest says what is missing. */
#include "orchestrator/image/admit.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "orchestrator/image/payload.h"
#include "orchestrator/image/signatures.h"

const char *image_reason_code(enum image_reason reason)
{
	static const char *const codes[] = {
#define X(name, text) [IMAGE_##name] = (text),
		IMAGE_REASONS(X)
#undef X
	};
	return codes[reason];
}

/* Keeps what is nearest to being admitted. */
static void judge(struct image_verdict *v, enum image_reason reason, const char *why)
{
	if (reason <= v->reason)
		return;
	v->reason = reason;
	snprintf(v->why, sizeof(v->why), "%s", why);
	make_printable(v->why, strlen(v->why));
}

/* ---- entries ---- */

/* The slash before the repository makes a path of it. */
static bool is_listed(const struct policy_image *entry, const struct image_reference *image)
{
	return slice_eq(entry->registry, image->registry) &&
	       policy_path_matches(entry->repository, slice_from(image->name, image->registry.len));
}

/* What is missing by this entry before any signature is looked at. */
static enum image_reason ask_entry(const struct policy_image *entry, const struct image_reference *image)
{
	if (!is_listed(entry, image))
		return IMAGE_NOT_ALLOWED;
	if (entry->digest.len > 0 && !slice_eq(entry->digest, image->digest))
		return IMAGE_OTHER_DIGEST;
	return entry->key.len > 0 ? IMAGE_UNSIGNED : IMAGE_ADMITTED;
}

static void ask_entries(const struct policy *p, const struct image_reference *image, struct image_verdict *v)
{
	judge(v, IMAGE_NOT_ALLOWED,
	      p->n_images == 0 ? "the policy allows no image: it has no images"
			       : "no entry of the policy's images has this registry and repository");
	for (size_t i = 0; i < p->n_images; i++) {
		enum image_reason reason = ask_entry(&p->images[i], image);
		judge(v, reason,
		      reason == IMAGE_ADMITTED ? "the image is allowed"
		      : reason == IMAGE_UNSIGNED
			      ? "the policy wants this image to be signed, and no signature of its digest is known"
			      : "the policy allows another digest of this image");
	}
}

/* ---- signatures ---- */

/* One image, while its signatures are gone through: each once, with the keys of all entries that want one, since a policy may have
 * very many entries. */
struct question {
	const struct policy *policy;
	const struct image_reference *image;
	struct image_verdict *verdict;
	size_t tries;
};

static void try_key(struct slice key, const struct question *q, struct slice payload, struct slice signature)
{
	struct image_claim claim;
	const char *fault = NULL;
	char why[IMAGE_WHY];
	if (!signature_is_good(key, payload, signature)) {
		judge(q->verdict, IMAGE_BAD_SIGNATURE,
		      "the image's signature is not one of the policy's key over the payload beside it");
	} else if (!payload_read(payload, &claim, &fault)) {
		snprintf(why, sizeof(why), "the image's signature can't be used: %s", fault);
		judge(q->verdict, IMAGE_BAD_SIGNATURE, why);
	} else if (!payload_is_about(&claim, q->image)) {
		judge(q->verdict, IMAGE_SIGNED_OTHER,
		      "the signature is good, but of another image: its payload names another repository or digest");
	} else {
		judge(q->verdict, IMAGE_ADMITTED, "the image is allowed, and signed by the policy's key");
	}
}

static bool is_answered(const struct question *q)
{
	return q->verdict->reason == IMAGE_ADMITTED || q->tries == LIMIT_IMAGE_TRIES;
}

static bool take_signature(void *arg, struct slice payload, struct slice signature)
{
	struct question *q = arg;
	for (size_t i = 0; i < q->policy->n_images && !is_answered(q); i++) {
		const struct policy_image *entry = &q->policy->images[i];
		if (ask_entry(entry, q->image) != IMAGE_UNSIGNED)
			continue;
		q->tries++;
		try_key(entry->key, q, payload, signature);
	}
	return is_answered(q);
}

static void look_for_signature(struct question *q, const char *signatures)
{
	char why[IMAGE_WHY];
	const char *fault = signatures_each(signatures, q->image->digest, take_signature, q);
	if (!fault)
		return;
	snprintf(why, sizeof(why), "the directory of signatures can't be used: %s", fault);
	judge(q->verdict, IMAGE_UNREADABLE, why);
}

bool image_admit(const struct policy *p, struct slice reference, const char *signatures, struct image_verdict *out)
{
	struct image_reference image;
	const char *why;
	*out = (struct image_verdict){.reason = IMAGE_MALFORMED};
	enum image_form form = image_reference_parse(reference, &image, &why);
	if (form != IMAGE_FORM_GOOD) {
		snprintf(out->why, sizeof(out->why), "%s", why);
		out->reason = form == IMAGE_FORM_UNPINNED ? IMAGE_UNPINNED : IMAGE_MALFORMED;
		return false;
	}
	ask_entries(p, &image, out);
	struct question q = {.policy = p, .image = &image, .verdict = out};
	if (out->reason == IMAGE_UNSIGNED && signatures && signatures[0])
		look_for_signature(&q, signatures);
	return out->reason == IMAGE_ADMITTED;
}

bool image_admit_file(const char *policy, struct slice reference, const char *signatures, struct image_verdict *out)
{
	struct arena arena;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	*out = (struct image_verdict){.reason = IMAGE_POLICY};
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = errs ? policy_load(policy, &arena, clock_wall_s(), NULL, errs) : NULL;
	if (p)
		image_admit(p, reference, signatures, out);
	else if (errs && errs->n > 0)
		snprintf(out->why, sizeof(out->why), "the policy can't be loaded: %u:%u: %s", errs->list[0].line,
			 errs->list[0].column, errs->list[0].text);
	else
		snprintf(out->why, sizeof(out->why), "the policy can't be loaded: no memory");
	arena_free(&arena);
	free(errs);
	return out->reason == IMAGE_ADMITTED;
}

bool image_digest_of(struct slice manifest, char out[IMAGE_DIGEST_ROOM])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	struct text t = text_in(out, IMAGE_DIGEST_ROOM - 1);
	memset(out, 0, IMAGE_DIGEST_ROOM);
	if (EVP_Digest(manifest.ptr ? manifest.ptr : "", manifest.len, digest, &len, EVP_sha256(), NULL) != 1)
		return false;
	text_put(&t, SLICE("sha256:"));
	text_put_hex(&t, digest, len);
	return text_ok(&t);
}
