/* What the fields of a head say about the connection and about the body. Two readers that answer these questions
 * differently are a smuggled request, so there is one way to say each thing and every other way is refused. */
#include "core/http/h1_private.h"

#include "core/base/limits.h"
#include "core/http/chars.h"

struct connection {
	size_t options;
	bool close, keep_alive;
};

/* Fields that Connection names belong to this hop only. */
static void drop_fields(struct message *m, struct slice name)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (slice_ieq(m->fields[i].name, name) && !field_is_hop_by_hop(m->fields[i].id))
			m->fields[i].id = FIELD_DROPPED;
}

static enum cage_status apply_option(struct connection *c, struct message *m, bool is_request, struct slice option,
				     struct h1_error *err)
{
	if (++c->options > LIMIT_CONNECTION_OPTIONS)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "Connection has too many options");
	if (char_span(option, CHAR_TOKEN) != option.len)
		return h1_refuse(err, REASON_HEAD_MALFORMED, "Connection has an option that is not a token");
	if (slice_ieq(option, SLICE("close")))
		c->close = true;
	else if (slice_ieq(option, SLICE("keep-alive")))
		c->keep_alive = true;
	else if (!is_request && slice_ieq(option, SLICE("transfer-encoding")))
		return CAGE_OK; /* some servers say so; the field belongs to one hop anyway */
	else if (h1_is_protected(option))
		return h1_refuse(err, REASON_HEAD_MALFORMED, "Connection names a field that is not its own");
	else
		drop_fields(m, option);
	return CAGE_OK;
}

/* The list may have empty places (RFC 9110, 5.6.1); they count as options, so that they are bounded too. */
static enum cage_status apply_options(struct connection *c, struct message *m, bool is_request, struct slice list,
				      struct h1_error *err)
{
	while (list.len > 0) {
		struct slice option = slice_trim(slice_cut(&list, ','));
		enum cage_status st = apply_option(c, m, is_request, option, err);
		if (st != CAGE_OK)
			return st;
	}
	return CAGE_OK;
}

enum cage_status h1_apply_connection(struct message *m, bool is_request, struct h1_error *err)
{
	struct connection c = {0};
	const struct field *f;
	for (size_t i = 0; i < m->n_fields; i++) {
		if (m->fields[i].id != FIELD_CONNECTION)
			continue;
		enum cage_status st = apply_options(&c, m, is_request, m->fields[i].value, err);
		if (st != CAGE_OK)
			return st;
	}
	m->keep_alive = !c.close && (m->version == HTTP_11 || c.keep_alive);
	if (!is_request || m->version == HTTP_10)
		return CAGE_OK;
	m->expect_continue = h1_count_fields(m, FIELD_EXPECT, &f) == 1 && slice_ieq(f->value, SLICE("100-continue"));
	return CAGE_OK;
}

/* The rules that requests and responses have in common. */
static enum cage_status read_framing(struct message *m, struct h1_error *err)
{
	const struct field *length, *encoding;
	size_t lengths = h1_count_fields(m, FIELD_CONTENT_LENGTH, &length);
	size_t encodings = h1_count_fields(m, FIELD_TRANSFER_ENCODING, &encoding);
	if (encodings > 0 && lengths > 0)
		return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "there are both Transfer-Encoding and Content-Length");
	if (encodings > 0 && m->version == HTTP_10)
		return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "HTTP/1.0 has no Transfer-Encoding");
	if (encodings > 1 || lengths > 1)
		return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "the length of the body is given twice");
	if (encodings == 1) {
		if (!slice_ieq(encoding->value, SLICE("chunked")))
			return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "Transfer-Encoding is not exactly chunked");
		m->framing = BODY_CHUNKED;
	} else if (lengths == 1) {
		if (!slice_to_u64(length->value, INT64_MAX, &m->content_length))
			return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "Content-Length is not one number");
		m->has_content_length = true;
		m->framing = BODY_LENGTH;
	}
	return CAGE_OK;
}

static bool has_body(const struct message *m)
{
	return m->framing == BODY_CHUNKED || m->content_length > 0;
}

enum cage_status h1_frame_request(struct message *m, struct h1_error *err)
{
	m->framing = BODY_NONE;
	enum cage_status st = read_framing(m, err);
	if (st == CAGE_OK && m->form == TARGET_AUTHORITY && has_body(m))
		return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "CONNECT has a body");
	return st;
}

/* No body, and no length worth repeating. */
static void set_bodiless(struct message *m)
{
	m->framing = BODY_NONE;
	m->content_length = 0;
	m->has_content_length = false;
}

/* A 1xx is followed by another head, so nothing may cast doubt on where it ends. A 204 that claims a body is a server's
 * slip that clients live with: it ends with its head, and what may follow dies with the connection. */
enum cage_status h1_frame_response(struct message *m, struct slice method, struct h1_error *err)
{
	m->framing = BODY_CLOSE;
	enum cage_status st = read_framing(m, err);
	if (st != CAGE_OK)
		return st;
	if (m->status < 200) {
		if (has_body(m))
			return h1_refuse(err, REASON_FRAMING_AMBIGUOUS, "an interim response has a body");
		set_bodiless(m);
	} else if (m->status == 204) {
		if (has_body(m))
			m->keep_alive = false;
		set_bodiless(m);
	} else if (m->status == 304 || slice_eq(method, SLICE("HEAD"))) {
		m->framing = BODY_NONE;
	} else if (m->framing == BODY_CLOSE) {
		m->keep_alive = false;
	}
	return CAGE_OK;
}
