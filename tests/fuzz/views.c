/* Views. Promises: the same texts, in the same views, are read however the input is cut; every text that begins ends, once;
 * what is decoded stays within the bounds; and the text itself is read as it is.
 *
 * Input: eight bytes that say where to cut, then the text. */
#include "core/base/limits.h"
#include "inspectors/views/views.h"
#include "tests/fuzz/fuzz.h"

#define TEXTS 4096

struct text {
	struct view view;
	uint64_t hash, len;
	bool is_over;
};

/* All that was read. */
struct reading {
	enum cage_status status;
	struct text texts[TEXTS];
	size_t n_texts, n_open, n_decoded;
	uint64_t runs; /* a sum over all runs */
};

/* The texts that are being read, so that a text knows its reading. */
static struct reading *current;

static void *begin(void *arg, const struct view *view, uint64_t offset)
{
	struct reading *r = arg;
	(void)offset;
	PROMISE(view->depth <= LIMIT_VIEW_DEPTH);
	for (unsigned i = 0; i < view->depth; i++)
		PROMISE(view->kinds[i] < VIEW_KINDS);
	PROMISE(++r->n_open <= LIMIT_VIEW_TEXTS + 1);
	if (r->n_texts == TEXTS) {
		r->n_open--;
		return NULL;
	}
	struct text *t = &r->texts[r->n_texts++];
	*t = (struct text){.hash = 14695981039346656037u};
	t->view.depth = view->depth;
	memcpy(t->view.kinds, view->kinds, view->depth * sizeof(view->kinds[0]));
	return t;
}

static enum cage_status read_bytes(void *text, struct slice bytes)
{
	struct text *t = text;
	PROMISE(!t->is_over && bytes.len > 0);
	for (size_t i = 0; i < bytes.len; i++)
		t->hash = (t->hash ^ (unsigned char)bytes.ptr[i]) * 1099511628211u;
	t->len += bytes.len;
	if (t->view.depth > 0)
		current->n_decoded += bytes.len;
	return CAGE_OK;
}

static enum cage_status end(void *text)
{
	struct text *t = text;
	PROMISE(!t->is_over);
	t->is_over = true;
	current->n_open--;
	return CAGE_OK;
}

static void run(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start)
{
	struct reading *r = arg;
	PROMISE(kind == VIEW_BASE64 || kind == VIEW_HEX);
	r->runs += ((offset * 31 + length) * 31 + kind) * 31 + start.len;
}

static const struct view_reader reader = {begin, read_bytes, end, run};

/* Sizes of pieces out of one number: small ones and large ones in any order; all at once when it is 0. */
static size_t next_size(uint64_t *sizes)
{
	if (*sizes == 0)
		return SIZE_MAX;
	*sizes = *sizes * 6364136223846793005u + 1442695040888963407u;
	return 1 + (size_t)(*sizes >> 40) % ((size_t)1 << (*sizes >> 33) % 10);
}

static int compare(const void *a, const void *b)
{
	const struct text *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return memcmp(&x->view, &y->view, sizeof(x->view));
}

static void read_input(struct reading *r, struct views *v, struct slice input, uint64_t sizes)
{
	struct slice rest = input;
	r->status = CAGE_OK;
	r->n_texts = r->n_open = r->n_decoded = 0;
	r->runs = 0;
	current = r;
	views_reset(v);
	while (r->status == CAGE_OK && rest.len > 0) {
		struct slice piece = fuzz_copy(fuzz_take(&rest, next_size(&sizes)));
		r->status = views_feed(v, piece);
		fuzz_free(&piece);
	}
	if (r->status == CAGE_OK) {
		r->status = views_end(v);
		PROMISE(r->n_open == 0);
	}
	views_reset(v);
	PROMISE(r->n_open == 0);
	PROMISE(r->n_decoded <= LIMIT_VIEW_WORK * input.len + LIMIT_VIEW_WORK_FREE);
	PROMISE(input.len == 0 || (r->texts[0].view.depth == 0 && r->texts[0].len <= input.len));
	PROMISE(r->status != CAGE_OK || input.len == 0 || r->texts[0].len == input.len);
	qsort(r->texts, r->n_texts, sizeof(r->texts[0]), compare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reading whole, pieces;
	struct slice input = slice_of(data, size);
	uint64_t sizes = fuzz_number(&input, 8) | 1;
	struct views *v = views_new(&reader, &whole);
	struct views *again = views_new(&reader, &pieces);
	PROMISE(v && again);
	read_input(&whole, v, input, 0);
	read_input(&pieces, again, input, sizes);
	if (whole.status == CAGE_OK && pieces.status == CAGE_OK) {
		PROMISE(whole.n_texts == pieces.n_texts && whole.runs == pieces.runs);
		for (size_t i = 0; i < whole.n_texts; i++)
			PROMISE(compare(&whole.texts[i], &pieces.texts[i]) == 0);
	}
	views_free(&v);
	views_free(&again);
	return 0;
}
