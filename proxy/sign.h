/* Requests that are signed instead of bearing a secret: the signature that the client made with a placeholder is replaced by
 * one made with the value. Pure functions over the request; what they make is in the caller's arena, which it cleanses. */
#ifndef CAGE_PROXY_SIGN_H
#define CAGE_PROXY_SIGN_H

#include "core/base/arena.h"
#include "core/base/reason.h"
#include "core/http/message.h"
#include "core/http/url.h"
#include "core/policy/policy.h"

/* The body as it is sent: with its content codings and what was put into it, without chunks. */
struct sign_body {
	bool is_known;            /* all of it is there, or there is none */
	unsigned char sha256[32]; /* with is_known */
};

/* Signs as AWS Signature Version 4 has it: scope (date, region, service), time and the list of signed fields are the client's,
 * from its Authorization field or its X-Amz-* parameters; key id is the policy's or the client's. Fields of that list that
 * are not sent are left out of it. A body that the client left unsigned stays so; one that is not known becomes
 * UNSIGNED-PAYLOAD at S3, and can't be signed elsewhere.
 *
 * Comes last: head and target are what is sent, with all secrets in them, framing and content_length included. REASON_NONE,
 * REASON_SECRET_SLOT (there is no such signature to replace, or it is malformed, or of a kind that can't be made anew; *detail
 * is a sentence that says what) or REASON_INTERNAL. Changes head and target; new bytes, the list of fields among them, are
 * in the arena. */
enum reason sign_sigv4(const struct policy_secret *secret, struct slice value, const struct sign_body *body,
		       struct message *head, struct target *target, struct arena *arena, const char **detail);

/* A field with an HMAC-SHA256 over the parts that the policy lists; replaces the client's. Path and query are as they are sent, the
 * latter without its '?'; several fields of one name are one, with commas. REASON_SECRET_SLOT when a field that is to be signed
 * is not there. body: all of it, in one piece (HMAC_BODY needs a body within the hold limit: the caller refuses others). */
enum reason sign_hmac(const struct policy_secret *secret, struct slice value, struct slice body, struct message *head,
		      const struct target *target, struct arena *arena, const char **detail);

#endif
