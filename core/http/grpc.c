/* Where the messages of a gRPC body begin and end, and what its header fields say about them. */
#include "core/http/grpc.h"

#include "core/base/limits.h"

bool grpc_is_content_type(struct slice value)
{
	const struct slice base = SLICE("application/grpc");
	struct slice type = slice_trim(slice_cut(&value, ';'));
	struct slice suffix = slice_from(type, base.len);
	return slice_ieq(slice_head(type, base.len), base) && (suffix.len == 0 || suffix.ptr[0] == '+');
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

static enum cage_status prefix_byte(struct grpc_reader *r, unsigned char byte)
{
	if (r->n_prefix == 0) {
		if (byte > 1)
			return CAGE_EPROTO;
		r->is_compressed = byte == 1;
		r->len = 0;
	} else {
		r->len = r->len << 8 | byte;
	}
	r->n_prefix++;
	return r->n_prefix == GRPC_PREFIX && r->len > LIMIT_GRPC_MESSAGE ? CAGE_ELIMIT : CAGE_OK;
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
	*part = (struct grpc_part){GRPC_BEGIN, r->is_compressed, r->len, SLICE_NONE};
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
