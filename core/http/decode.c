/* The stack of codings of one body: what the outermost engine gives is fed to the next, and the sink sees all.
 * How much all of them may give is bounded here, so that no engine has to know. */
#include "core/http/decode_private.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/wipe.h"

/* The bound on the output grows in steps of the input, each of which is fed for itself. So whether a body is within it
 * does not depend on the pieces in which the network brought it. */
#define STEP 4096

struct layer {
	const struct decode_engine *engine;
	void *self;
	char out[DECODE_OUT];
};

struct decoder {
	decode_sink *sink;
	void *arg;
	uint64_t fed;           /* bytes of the body */
	uint64_t made, allowed; /* decoded bytes of all layers: so far, and how many there may be */
	size_t counted;         /* of LIMIT_DECODERS */
	size_t n_layers;
	struct layer layers[]; /* the outermost first */
};

/* ---- which codings ---- */

/* In the order of the field: the last one was put on last. */
struct codings {
	const struct decode_engine *engines[LIMIT_CODINGS];
	size_t n;
};

static const struct decode_engine *engine_of(struct slice name)
{
	const struct {
		struct slice name;
		const struct decode_engine *engine;
	} known[] = {{SLICE("gzip"), &decode_gzip},
		     {SLICE("x-gzip"), &decode_gzip},
		     {SLICE("deflate"), &decode_deflate},
		     {SLICE("br"), &decode_brotli},
		     {SLICE("zstd"), &decode_zstd}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (slice_ieq(name, known[i].name))
			return known[i].engine;
	return NULL;
}

static enum cage_status parse_codings(struct slice list, struct codings *out)
{
	while (list.len > 0) {
		struct slice name = slice_trim(slice_cut(&list, ','));
		if (name.len == 0 || slice_ieq(name, SLICE("identity")))
			continue;
		const struct decode_engine *engine = engine_of(name);
		if (!engine || out->n == LIMIT_CODINGS)
			return CAGE_EPROTO;
		out->engines[out->n++] = engine;
	}
	return CAGE_OK;
}

/* ---- life ---- */

/* Their windows are memory that a client chooses. */
static size_t alive;

bool decoders_are_scarce(void)
{
	return alive > LIMIT_DECODERS / 2;
}

static bool add_layer(struct decoder *d, const struct decode_engine *engine)
{
	struct layer *l = &d->layers[d->n_layers];
	l->self = engine->new ();
	if (!l->self)
		return false;
	l->engine = engine;
	d->n_layers++;
	return true;
}

enum cage_status decoder_new(struct slice codings, decode_sink *sink, void *arg, struct decoder **out)
{
	struct codings list = {.n = 0};
	*out = NULL;
	enum cage_status st = parse_codings(codings, &list);
	if (st != CAGE_OK || list.n == 0)
		return st;
	if (alive + list.n > LIMIT_DECODERS)
		return CAGE_AGAIN;
	struct decoder *d = malloc(sizeof(*d) + list.n * sizeof(d->layers[0]));
	if (!d)
		return CAGE_ENOMEM;
	alive += list.n;
	*d = (struct decoder){.sink = sink, .arg = arg, .counted = list.n};
	for (size_t i = list.n; i > 0; i--) {
		if (!add_layer(d, list.engines[i - 1])) {
			decoder_free(&d);
			return CAGE_ENOMEM;
		}
	}
	*out = d;
	return CAGE_OK;
}

void decoder_free(struct decoder **d)
{
	if (!*d)
		return;
	for (size_t i = 0; i < (*d)->n_layers; i++)
		(*d)->layers[i].engine->free((*d)->layers[i].self);
	alive -= (*d)->counted;
	wipe_free(*d); /* with what each coding gave last */
	*d = NULL;
}

/* ---- at work ---- */

static enum cage_status layer_feed(struct decoder *d, size_t i, struct slice in);

/* What a layer made goes to the sink, and to the layer behind it. */
static enum cage_status layer_give(struct decoder *d, size_t i, struct slice made)
{
	if (made.len == 0)
		return CAGE_OK;
	d->made += made.len;
	if (d->made > d->allowed)
		return CAGE_ELIMIT;
	enum cage_status st = d->sink(d->arg, (unsigned)(d->n_layers - 1 - i), made);
	return st == CAGE_OK && i + 1 < d->n_layers ? layer_feed(d, i + 1, made) : st;
}

static enum cage_status layer_feed(struct decoder *d, size_t i, struct slice in)
{
	struct layer *l = &d->layers[i];
	enum cage_status decoded;
	do {
		struct decode_out out = {.ptr = l->out};
		decoded = l->engine->feed(l->self, &in, &out);
		if (decoded != CAGE_OK && decoded != CAGE_AGAIN)
			return decoded;
		enum cage_status given = layer_give(d, i, slice_of(out.ptr, out.len));
		if (given != CAGE_OK)
			return given;
	} while (decoded == CAGE_AGAIN);
	return CAGE_OK;
}

enum cage_status decoder_feed(struct decoder *d, struct slice piece)
{
	while (piece.len > 0) {
		uint64_t into = d->fed % STEP;
		struct slice step = slice_head(piece, (size_t)(STEP - into));
		d->allowed = LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * (d->fed - into);
		d->fed += step.len;
		piece = slice_from(piece, step.len);
		enum cage_status st = d->sink(d->arg, (unsigned)d->n_layers, step);
		if (st == CAGE_OK)
			st = layer_feed(d, 0, step);
		if (st != CAGE_OK)
			return st;
	}
	return CAGE_OK;
}

enum cage_status decoder_end(struct decoder *d)
{
	if (d->fed == 0)
		return CAGE_OK;
	for (size_t i = 0; i < d->n_layers; i++) {
		enum cage_status st = d->layers[i].engine->end(d->layers[i].self);
		if (st != CAGE_OK)
			return st;
	}
	return CAGE_OK;
}
