/* The text of gRPC messages. Each compressed one gets a decoder of its own, since each is a stream of its own. */
#include "core/http/grpc.h"

#include "core/base/limits.h"

enum cage_status grpc_inflate_init(struct grpc_inflate *g, enum grpc_kind kind, struct slice encoding,
				   const struct grpc_sink *sink)
{
	*g = (struct grpc_inflate){.reader = {.kind = kind}, .sink = *sink};
	return grpc_encoding_parse(encoding, &g->coding);
}

void grpc_inflate_release(struct grpc_inflate *g)
{
	decoder_free(&g->decoder);
}

static enum cage_status decoded_piece(void *arg, unsigned codings, struct slice piece)
{
	struct grpc_inflate *g = arg;
	if (codings > 0)
		g->fed += piece.len;
	else
		g->made += piece.len;
	return g->sink.piece(g->sink.arg, codings, piece);
}

static enum cage_status message_begin(const struct grpc_inflate *g, const struct grpc_part *part)
{
	return part->is_compressed && g->coding.len == 0 ? CAGE_EPROTO : g->sink.begin(g->sink.arg, part->data);
}

/* The decoder comes with the first byte, so that empty messages cost nothing. */
static enum cage_status message_data(struct grpc_inflate *g, const struct grpc_part *part)
{
	if (!part->is_compressed)
		return g->sink.piece(g->sink.arg, 0, part->data);
	enum cage_status st = g->decoder ? CAGE_OK : decoder_new(g->coding, decoded_piece, g, &g->decoder);
	return st == CAGE_OK ? decoder_feed(g->decoder, part->data) : st;
}

/* Many small messages may not decode to what one large message may not. */
static enum cage_status message_end(struct grpc_inflate *g, const struct grpc_part *part)
{
	g->whole += GRPC_PREFIX + part->len;
	if (g->decoder) {
		enum cage_status st = decoder_end(g->decoder);
		decoder_free(&g->decoder);
		if (st != CAGE_OK)
			return st;
		if (g->made > LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * g->fed)
			return CAGE_ELIMIT;
	}
	return g->sink.end(g->sink.arg);
}

static enum cage_status take_part(struct grpc_inflate *g, const struct grpc_part *part)
{
	switch (part->kind) {
	case GRPC_BEGIN:
		return message_begin(g, part);
	case GRPC_DATA:
		return message_data(g, part);
	case GRPC_END:
		return message_end(g, part);
	}
	return CAGE_EPROTO;
}

enum cage_status grpc_inflate_feed(struct grpc_inflate *g, struct slice piece)
{
	struct grpc_part part;
	enum cage_status st;
	while ((st = grpc_next(&g->reader, &piece, &part)) == CAGE_OK) {
		st = take_part(g, &part);
		if (st != CAGE_OK)
			return st;
	}
	return st == CAGE_AGAIN ? CAGE_OK : st;
}

enum cage_status grpc_inflate_end(const struct grpc_inflate *g)
{
	return grpc_end_of_input(&g->reader);
}
