/* What a client's AWS signature says of itself: who signed, for which day, region and service, at what time, and which
 * fields. It stands in the Authorization field or in X-Amz-* parameters. */
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/http/chars.h"
#include "proxy/percent.h"
#include "proxy/sign_private.h"

#define TIME_LEN 16 /* "20260131T235959Z" */

static const char malformed[] = "The AWS signature is malformed.";

/* The parts of a signature, wherever they stand. */
struct parts {
	struct slice algorithm, credential, names, time;
};

/* ---- where it stands ---- */

/* "Credential=..., SignedHeaders=..., Signature=...", in any order, each once. */
static bool split_authorization(struct slice rest, struct parts *out)
{
	struct slice signature = SLICE_NONE;
	while (rest.len > 0) {
		struct slice value = slice_trim(slice_cut(&rest, ','));
		struct slice name = slice_cut(&value, '=');
		struct slice *part = slice_eq(name, SLICE("Credential"))      ? &out->credential
				     : slice_eq(name, SLICE("SignedHeaders")) ? &out->names
				     : slice_eq(name, SLICE("Signature"))     ? &signature
									      : NULL;
		if (!part || part->len > 0)
			return false;
		*part = value;
	}
	return signature.len > 0;
}

static size_t count_fields(const struct message *head, struct slice name, struct slice *value)
{
	size_t n = 0;
	for (size_t i = 0; i < head->n_fields; i++) {
		if (!slice_ieq(head->fields[i].name, name))
			continue;
		*value = head->fields[i].value;
		n++;
	}
	return n;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" as AWS writes it; some clients write the zone as a number. */
static bool convert_date(struct slice date, struct arena *arena, struct slice *out)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char *p = arena_alloc(arena, TIME_LEN);
	size_t month = 0;
	struct slice zone = slice_from(date, 25);
	if (!p ||
	    (!slice_eq(zone, SLICE(" GMT")) && !slice_eq(zone, SLICE(" +0000")) && !slice_eq(zone, SLICE(" -0000"))))
		return false;
	while (month < 12 && memcmp(months + 3 * month, date.ptr + 8, 3) != 0)
		month++;
	if (month == 12)
		return false;
	struct text t = text_in(p, TIME_LEN);
	text_put(&t, slice_of(date.ptr + 12, 4));
	text_put_char(&t, month < 9 ? '0' : '1');
	text_put_char(&t, (char)('0' + (month + 1) % 10));
	text_put(&t, slice_of(date.ptr + 5, 2));
	text_put_char(&t, 'T');
	for (size_t at = 17; at < 25; at += 3)
		text_put(&t, slice_of(date.ptr + at, 2));
	text_put_char(&t, 'Z');
	*out = text_slice(&t);
	return true;
}

static enum reason from_fields(const struct message *head, struct arena *arena, struct parts *out, const char **detail)
{
	struct slice rest = SLICE_NONE, date = SLICE_NONE;
	if (count_fields(head, SLICE("authorization"), &rest) != 1)
		return sign_refuse(detail, "The request has more than one signature.");
	out->algorithm = slice_cut(&rest, ' ');
	if (!split_authorization(rest, out))
		return sign_refuse(detail, malformed);
	if (count_fields(head, SLICE("x-amz-date"), &out->time) > 1)
		return sign_refuse(detail, malformed);
	if (out->time.len > 0)
		return REASON_NONE;
	if (count_fields(head, SLICE("date"), &date) != 1)
		return sign_refuse(detail, "The request has no date that goes with its AWS signature.");
	if (date.len == TIME_LEN)
		out->time = date;
	else if (!convert_date(date, arena, &out->time))
		return sign_refuse(detail, "The request has no date that goes with its AWS signature.");
	return REASON_NONE;
}

static bool one_param(const struct sign_query *q, struct slice name, struct arena *arena, struct slice *out)
{
	size_t n;
	const struct sign_param *p = sign_query_find(q, name, &n);
	if (n != 1)
		return false;
	*out = percent_decode(p->value, arena);
	return out->ptr != NULL;
}

static enum reason from_query(const struct sign_query *q, struct arena *arena, struct parts *out, const char **detail)
{
	struct slice signature;
	if (!one_param(q, SLICE("X-Amz-Algorithm"), arena, &out->algorithm) ||
	    !one_param(q, SLICE("X-Amz-Credential"), arena, &out->credential) ||
	    !one_param(q, SLICE("X-Amz-Date"), arena, &out->time) ||
	    !one_param(q, SLICE("X-Amz-SignedHeaders"), arena, &out->names) ||
	    !one_param(q, SLICE("X-Amz-Signature"), arena, &signature))
		return sign_refuse(detail, malformed);
	return REASON_NONE;
}

/* ---- what it says ---- */

static bool is_token(struct slice s)
{
	return s.len > 0 && char_span(s, CHAR_TOKEN) == s.len;
}

static bool is_time(struct slice s)
{
	if (s.len != TIME_LEN || s.ptr[8] != 'T' || s.ptr[15] != 'Z')
		return false;
	return char_span(s, CHAR_DIGIT) == 8 && char_span(slice_from(s, 9), CHAR_DIGIT) == 6;
}

/* Cuts what is behind the last '/' off *rest. */
static struct slice cut_last(struct slice *rest)
{
	size_t at = slice_rfind(*rest, '/');
	struct slice last = slice_from(*rest, at + 1);
	*rest = slice_head(*rest, at);
	return last;
}

/* "ID/20260131/REGION/SERVICE/aws4_request" */
static bool read_credential(struct slice credential, struct sign_claim *out)
{
	struct slice rest = credential;
	if (!slice_eq(cut_last(&rest), SLICE("aws4_request")))
		return false;
	out->service = cut_last(&rest);
	out->region = cut_last(&rest);
	out->date = cut_last(&rest);
	out->key_id = rest;
	return rest.len > 0 && char_span(rest, CHAR_TARGET) == rest.len && slice_find(rest, ',') == rest.len &&
	       is_token(out->service) && is_token(out->region);
}

static bool is_name(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (ascii_lower((unsigned char)s.ptr[i]) != (unsigned char)s.ptr[i])
			return false;
	return is_token(s);
}

static enum reason read_names(struct slice list, struct arena *arena, struct sign_claim *out, const char **detail)
{
	bool has_host = false;
	out->names = arena_array(arena, LIMIT_HEADERS, sizeof(*out->names));
	if (!out->names)
		return REASON_INTERNAL;
	while (list.len > 0) {
		struct slice name = slice_cut(&list, ';');
		bool in_order = out->n_names == 0 || slice_compare(out->names[out->n_names - 1], name) < 0;
		if (!is_name(name) || !in_order || out->n_names == LIMIT_HEADERS)
			return sign_refuse(detail, malformed);
		has_host = has_host || slice_eq(name, SLICE("host"));
		out->names[out->n_names++] = name;
	}
	return has_host ? REASON_NONE : sign_refuse(detail, "The AWS signature does not cover the host.");
}

static enum reason check_algorithm(struct slice algorithm, const char **detail)
{
	if (slice_eq(algorithm, SLICE("AWS4-HMAC-SHA256")))
		return REASON_NONE;
	if (slice_starts(algorithm, SLICE("AWS4-ECDSA-")))
		return sign_refuse(detail, "A SigV4A signature can't be replaced; use SigV4.");
	return sign_refuse(detail, "The request has no AWS signature to replace.");
}

/* Is there a signature in the field? Nothing else in it is ours to read. */
static bool is_in_field(const struct message *head)
{
	const struct field *f = message_field(head, SLICE("authorization"));
	return f && slice_starts(f->value, SLICE("AWS4-"));
}

enum reason sign_read_claim(const struct message *head, const struct sign_query *q, struct arena *arena,
			    struct sign_claim *out, const char **detail)
{
	struct parts parts = {0};
	size_t in_query;
	*out = (struct sign_claim){0};
	sign_query_find(q, SLICE("X-Amz-Signature"), &in_query);
	out->in_query = in_query > 0;
	if (out->in_query == is_in_field(head))
		return sign_refuse(detail, in_query ? "The request has more than one signature."
						    : "The request has no AWS signature to replace.");
	enum reason r = out->in_query ? from_query(q, arena, &parts, detail) : from_fields(head, arena, &parts, detail);
	if (r == REASON_NONE)
		r = check_algorithm(parts.algorithm, detail);
	if (r != REASON_NONE)
		return r;
	out->time = parts.time;
	if (!parts.credential.ptr || !read_credential(parts.credential, out) || !is_time(out->time) ||
	    !slice_eq(out->date, slice_head(out->time, 8)))
		return sign_refuse(detail, malformed);
	if (slice_eq(out->service, SLICE("s3express")))
		return sign_refuse(detail, "An S3 Express signature can't be replaced.");
	return read_names(parts.names, arena, out, detail);
}
