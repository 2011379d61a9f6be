/* From a head that has passed the gate to a message, or to a sentence that says why not. */
#include "core/http/h1_private.h"

#include "core/base/limits.h"
#include "core/http/chars.h"

static bool parse_version(struct slice text, enum http_version *out)
{
	*out = slice_eq(text, SLICE("HTTP/1.1")) ? HTTP_11 : HTTP_10;
	return *out == HTTP_11 || slice_eq(text, SLICE("HTTP/1.0"));
}

/* Cuts the start line off the head and makes fields of the rest. */
static enum cage_status parse_lines(struct slice head, struct arena *arena, struct slice *start, struct message *out,
				    struct h1_error *err)
{
	*out = (struct message){0};
	*start = h1_cut_line(&head);
	if (head.len < 2)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "the head is not whole");
	return h1_parse_fields(slice_head(head, head.len - 2), arena, &out->fields, &out->n_fields, err);
}

/* host:port; which host and port it may be is for authority_parse() to say. */
static bool is_authority(struct slice target)
{
	if (slice_find(target, ':') == target.len)
		return false;
	for (size_t i = 0; i < target.len; i++)
		if (strchr("/?@\\", target.ptr[i]))
			return false;
	return true;
}

/* scheme "://", whatever the scheme. */
static bool is_absolute(struct slice target)
{
	size_t n = slice_find(target, ':');
	for (size_t i = 0; i < n; i++) {
		char c = target.ptr[i];
		bool is_alpha = ascii_lower((unsigned char)c) >= 'a' && ascii_lower((unsigned char)c) <= 'z';
		if (!is_alpha && (i == 0 || !(char_is(c, CHAR_DIGIT) || c == '+' || c == '-' || c == '.')))
			return false;
	}
	return n > 0 && slice_starts(slice_from(target, n), SLICE("://"));
}

/* Each form of target goes with certain methods only (RFC 9112, 3.2). */
static bool find_form(struct slice method, struct slice target, enum target_form *out)
{
	if (slice_eq(method, SLICE("CONNECT"))) {
		*out = TARGET_AUTHORITY;
		return is_authority(target);
	}
	if (slice_eq(target, SLICE("*"))) {
		*out = TARGET_ASTERISK;
		return slice_eq(method, SLICE("OPTIONS"));
	}
	if (slice_starts(target, SLICE("/"))) {
		*out = TARGET_ORIGIN;
		return true;
	}
	*out = TARGET_ABSOLUTE;
	return is_absolute(target);
}

static enum cage_status parse_request_line(struct slice line, struct message *out, struct h1_error *err)
{
	out->method = slice_cut(&line, ' ');
	out->target = slice_cut(&line, ' ');
	if (out->method.len == 0 || out->method.len > LIMIT_METHOD)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "the method is empty or too long");
	if (!parse_version(line, &out->version))
		return h1_refuse(err, REASON_HEAD_MALFORMED, "the version is neither HTTP/1.0 nor HTTP/1.1");
	if (out->target.len > LIMIT_TARGET) {
		*err = (struct h1_error){REASON_HEAD_TOO_LARGE, "the request target is too long"};
		return CAGE_ELIMIT;
	}
	if (char_span(out->target, CHAR_TARGET) != out->target.len)
		return h1_refuse(err, REASON_TARGET_MALFORMED, "the target has a byte that no target may have");
	if (slice_find(out->target, '#') != out->target.len)
		return h1_refuse(err, REASON_TARGET_MALFORMED, "the target has a fragment");
	if (!find_form(out->method, out->target, &out->form))
		return h1_refuse(err, REASON_TARGET_MALFORMED, "the target has a form that its method can't have");
	return CAGE_OK;
}

static enum cage_status find_host(struct message *m, struct h1_error *err)
{
	const struct field *host;
	size_t n = h1_count_fields(m, FIELD_HOST, &host);
	if (n > 1)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "there is more than one Host");
	if (n == 0 && m->version == HTTP_11)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "there is no Host");
	if (n == 1) {
		m->has_host = true;
		m->host = host->value;
	}
	return CAGE_OK;
}

enum cage_status h1_parse_request(struct slice head, struct arena *arena, struct message *out, struct h1_error *err)
{
	struct slice line;
	enum cage_status st = parse_lines(head, arena, &line, out, err);
	if (st == CAGE_OK)
		st = parse_request_line(line, out, err);
	if (st == CAGE_OK)
		st = find_host(out, err);
	if (st == CAGE_OK)
		st = h1_apply_connection(out, true, err);
	if (st == CAGE_OK)
		st = h1_frame_request(out, err);
	return st;
}

static enum cage_status parse_status_line(struct slice line, struct message *out, struct h1_error *err)
{
	uint64_t status;
	if (!parse_version(slice_cut(&line, ' '), &out->version))
		return h1_refuse(err, REASON_HEAD_MALFORMED, "the version is neither HTTP/1.0 nor HTTP/1.1");
	struct slice code = slice_cut(&line, ' ');
	if (code.len != 3 || !slice_to_u64(code, 999, &status) || status < 100)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "the status is not a number from 100 to 999");
	out->status = (int)status;
	out->phrase = line;
	return CAGE_OK;
}

enum cage_status h1_parse_response(struct slice head, struct slice method, struct arena *arena, struct message *out,
				   struct h1_error *err)
{
	struct slice line;
	enum cage_status st = parse_lines(head, arena, &line, out, err);
	if (st == CAGE_OK)
		st = parse_status_line(line, out, err);
	if (st == CAGE_OK)
		st = h1_apply_connection(out, false, err);
	if (st == CAGE_OK)
		st = h1_frame_response(out, method, err);
	return st;
}
