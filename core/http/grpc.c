/* Where the messages of a gRPC body begin and end, and what its header fields say about them. */
#include "core/http/grpc.h"

#include "core/base/limits.h"

enum grpc_kind grpc_kind_of(struct slice value)
{
	static const struct {
		struct slice name;
		enum grpc_kind kind;
	} types[] = {{WORD("application/grpc"), GRPC_NATIVE},
		     {WORD("application/grpc-web"), GRPC_WEB},
		     {WORD("application/grpc-web-text"), GRPC_TEXT},
		     {WORD("application/connect"), GRPC_CONNECT}};
	struct slice type = slice_trim(slice_cut(&value, ';'));
	struct slice name = slice_head(type, slice_find(type, '+'));
	bool has_suffix = name.len < type.len;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (slice_ieq(name, types[i].name))
			return types[i].kind == GRPC_CONNECT && !has_suffix ? GRPC_NONE : types[i].kind;
	return GRPC_NONE;
}

enum grpc_kind grpc_kind_of_message(const struct message *m)
{
	enum grpc_kind kind = GRPC_NONE;
	for (size_t i = 0; i < m->n_fields && kind == GRPC_NONE; i++)
		if (slice_ieq(m->fields[i].name, SLICE("content-type")))
			kind = grpc_kind_of(m->fields[i].value);
	return kind;
}

struct slice grpc_encoding_field(enum grpc_kind kind)
{
	return kind == GRPC_CONNECT ? SLICE("connect-content-encoding") : SLICE("grpc-encoding");
}

enum cage_status grpc_encoding_parse(struct slice value, struct slice *coding)
{
	const struct slice known[] = {SLICE("gzip"), SLICE("deflate")};
	*coding = SLICE_NONE;
	value = slice_trim(value);
	if (value.len == 0 || slice_ieq(value, SLICE("identity")))
		return CAGE_OK;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (slice_ieq(value, known[i])) {
			*coding = known[i];
			return CAGE_OK;
		}
	}
	return CAGE_EPROTO;
}

/* ---- messages ---- */

/* Flags beside the one for "compressed". */
static unsigned more_flags(enum grpc_kind kind)
{
	switch (kind) {
	case GRPC_WEB:
		return 0x80; /* trailers */
	case GRPC_CONNECT:
		return 0x02; /* the end of the stream */
	case GRPC_NONE:
	case GRPC_NATIVE:
	case GRPC_TEXT:
		break;
	}
	return 0;
}

static enum cage_status prefix_byte(struct grpc_reader *r, unsigned char byte)
{
	if (r->n_prefix == 0) {
		if (byte & ~(1U | more_flags(r->kind)))
			return CAGE_EPROTO;
		r->is_compressed = byte & 1;
		r->len = 0;
	} else {
		r->len = r->len << 8 | byte;
	}
	r->prefix[r->n_prefix++] = (char)byte;
	bool is_long = r->n_prefix == GRPC_PREFIX && r->len > LIMIT_GRPC_MESSAGE;
	return is_long && !r->any_length ? CAGE_ELIMIT : CAGE_OK;
}

static enum cage_status next_begin(struct grpc_reader *r, struct slice *input, struct grpc_part *part)
{
	while (r->n_prefix < GRPC_PREFIX) {
		if (input->len == 0)
			return CAGE_AGAIN;
		enum cage_status st = prefix_byte(r, (unsigned char)input->ptr[0]);
		if (st != CAGE_OK) {
			r->state = GRPC_BROKEN;
			return st;
		}
		*input = slice_from(*input, 1);
	}
	r->state = GRPC_IN_MESSAGE;
	r->left = r->len;
	*part = (struct grpc_part){GRPC_BEGIN, r->is_compressed, r->len, slice_of(r->prefix, GRPC_PREFIX)};
	return CAGE_OK;
}

static enum cage_status next_in_message(struct grpc_reader *r, struct slice *input, struct grpc_part *part)
{
	if (r->left > 0 && input->len == 0)
		return CAGE_AGAIN;
	*part = (struct grpc_part){GRPC_DATA, r->is_compressed, r->len, slice_head(*input, r->left)};
	if (r->left == 0) {
		part->kind = GRPC_END;
		r->state = GRPC_IN_PREFIX;
		r->n_prefix = 0;
	}
	r->left -= (uint32_t)part->data.len;
	*input = slice_from(*input, part->data.len);
	return CAGE_OK;
}

enum cage_status grpc_next(struct grpc_reader *r, struct slice *input, struct grpc_part *part)
{
	switch (r->state) {
	case GRPC_IN_PREFIX:
		return next_begin(r, input, part);
	case GRPC_IN_MESSAGE:
		return next_in_message(r, input, part);
	case GRPC_BROKEN:
		break;
	}
	return CAGE_EPROTO;
}

enum cage_status grpc_end_of_input(const struct grpc_reader *r)
{
	if (r->state == GRPC_BROKEN)
		return CAGE_EPROTO;
	return r->state == GRPC_IN_PREFIX && r->n_prefix == 0 ? CAGE_OK : CAGE_TRUNCATED;
}
