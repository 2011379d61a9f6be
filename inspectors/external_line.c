/* Lines to the external inspector. All of them are ASCII: any other byte of a field or path is the character of that number,
 * so that no byte is lost and nobody has to guess an encoding. */
#include "inspectors/external_private.h"

static void begin(struct text *t, struct slice type, struct slice id)
{
	text_put(t, SLICE("{\"type\":\""));
	text_put(t, type);
	text_put(t, SLICE("\",\"id\":\""));
	text_put(t, id);
	text_put_char(t, '"');
}

static void end(struct text *t)
{
	text_put(t, SLICE("}\n"));
}

static void put_key(struct text *t, struct slice key)
{
	text_put(t, SLICE(",\""));
	text_put(t, key);
	text_put(t, SLICE("\":"));
}

static void put_string(struct text *t, struct slice value)
{
	text_put_char(t, '"');
	text_put_json(t, value);
	text_put_char(t, '"');
}

static void put_member(struct text *t, struct slice key, struct slice value)
{
	put_key(t, key);
	put_string(t, value);
}

/* Only what is sent on: the token of a sandbox, for one, is nobody's business. */
static bool is_shown(const struct field *f)
{
	return !field_is_hop_by_hop(f->id) && f->id != FIELD_HOST && f->id != FIELD_EXPECT;
}

static void put_fields(struct text *t, struct slice key, const struct field *fields, size_t n)
{
	bool is_first = true;
	put_key(t, key);
	text_put_char(t, '[');
	for (size_t i = 0; i < n; i++) {
		if (!is_shown(&fields[i]))
			continue;
		text_put(t, is_first ? SLICE("[") : SLICE(",["));
		is_first = false;
		put_string(t, fields[i].name);
		text_put_char(t, ',');
		put_string(t, fields[i].value);
		text_put_char(t, ']');
	}
	text_put_char(t, ']');
}

static struct slice message_kind_text(enum message_kind kind)
{
	switch (kind) {
	case MESSAGE_TEXT:
		return SLICE("text");
	case MESSAGE_BINARY:
		return SLICE("binary");
	case MESSAGE_CONTROL:
		return SLICE("control");
	case MESSAGE_NONE:
		break;
	}
	return SLICE_NONE;
}

void external_line_head(struct text *t, struct slice id, const struct subject *s)
{
	const struct target *to = s->target;
	begin(t, SLICE("head"), id);
	put_member(t, SLICE("method"), s->method);
	put_member(t, SLICE("scheme"), scheme_text(to->scheme));
	put_member(t, SLICE("host"), to->host.text);
	put_key(t, SLICE("port"));
	text_put_u64(t, to->port);
	put_key(t, SLICE("path"));
	text_put_char(t, '"');
	text_put_json(t, to->path);
	text_put_json(t, to->query);
	text_put_char(t, '"');
	put_member(t, SLICE("rule"), s->rule ? s->rule->id : SLICE_NONE);
	put_member(t, SLICE("sandbox"), s->sandbox);
	if (s->message != MESSAGE_NONE)
		put_member(t, SLICE("message"), message_kind_text(s->message));
	put_fields(t, SLICE("headers"), s->head->fields, s->head->n_fields);
	end(t);
}

/* Three bytes, or the last one or two of a text, as four characters. */
static void put_base64_group(struct text *t, const unsigned char *in, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = (unsigned)in[0] << 16 | (n > 1 ? (unsigned)in[1] << 8 : 0) | (n > 2 ? in[2] : 0u);
	char out[4] = {digits[bits >> 18], digits[bits >> 12 & 63], n > 1 ? digits[bits >> 6 & 63] : '=',
		       n > 2 ? digits[bits & 63] : '='};
	text_put(t, slice_of(out, sizeof(out)));
}

void external_line_body(struct text *t, struct slice id, struct slice piece)
{
	const unsigned char *bytes = (const unsigned char *)piece.ptr;
	begin(t, SLICE("body"), id);
	put_key(t, SLICE("data"));
	text_put_char(t, '"');
	for (size_t i = 0; i < piece.len; i += 3)
		put_base64_group(t, bytes + i, piece.len - i);
	text_put_char(t, '"');
	end(t);
}

void external_line_end(struct text *t, struct slice id, const struct field *trailers, size_t n)
{
	begin(t, SLICE("end"), id);
	put_fields(t, SLICE("trailers"), trailers, n);
	end(t);
}

void external_line_cancel(struct text *t, struct slice id)
{
	begin(t, SLICE("cancel"), id);
	end(t);
}
