/* The tree of texts: opens, fills and closes layers, hands what they hold to the reader, and keeps the bounds on how many
 * there are and on how much is decoded. Layers are recycled, so that steady work allocates nothing. */
#include "inspectors/views/views_private.h"

#include <stdlib.h>

struct slice view_kind_text(enum view_kind kind)
{
	static const struct slice texts[VIEW_KINDS] = {
		[VIEW_BASE64] = SLICE("base64"), [VIEW_HEX] = SLICE("hex"),     [VIEW_PERCENT] = SLICE("percent"),
		[VIEW_JSON] = SLICE("json"),     [VIEW_UTF16] = SLICE("utf16"),
	};
	return kind < VIEW_KINDS ? texts[kind] : SLICE_NONE;
}

static enum view_kind child_kind(enum child child)
{
	if (child < CHILD_HEX)
		return VIEW_BASE64;
	if (child < CHILD_PERCENT)
		return VIEW_HEX;
	if (child == CHILD_PERCENT)
		return VIEW_PERCENT;
	return child == CHILD_JSON ? VIEW_JSON : VIEW_UTF16;
}

static void fail(struct views *v, enum cage_status status)
{
	if (v->status == CAGE_OK)
		v->status = status;
}

/* ---- layers ---- */

/* Decoders set up what else they need when they start. */
static void layer_init(struct layer *t, struct views *v)
{
	t->views = v;
	t->view.depth = 0;
	t->origin = 0;
	t->text = NULL;
	t->n_read = t->paced = t->paced_at = 0;
	t->at = 0;
	t->is_busy = false;
	memset(t->last, 0, sizeof(t->last));
	t->is_odd = false;
	t->base64.run.state = RUN_NONE;
	t->hex.run.state = RUN_NONE;
	t->utf16.run = 0;
	t->n_history = 0;
	t->n_pending = 0;
	t->n_buffer = 0;
}

/* From those that were used before, or a new one; NULL without memory. Layers have no children when they are free. */
static struct layer *layer_take(struct views *v)
{
	struct layer *t = v->free;
	if (t)
		v->free = t->next_free;
	else
		t = calloc(1, sizeof(*t));
	if (t)
		layer_init(t, v);
	return t;
}

static void layer_give_back(struct layer *t)
{
	t->next_free = t->views->free;
	t->views->free = t;
}

void layer_open(struct layer *parent, enum child child, uint64_t at)
{
	struct views *v = parent->views;
	if (v->n_open == LIMIT_VIEW_TEXTS) {
		fail(v, CAGE_ELIMIT);
		return;
	}
	struct layer *t = layer_take(v);
	if (!t) {
		fail(v, CAGE_ENOMEM);
		return;
	}
	t->view = parent->view;
	t->view.kinds[t->view.depth++] = child_kind(child);
	t->origin = parent->view.depth > 0 ? parent->origin : at;
	t->paced_at = v->root->at;
	parent->children[child] = t;
	v->n_open++;
}

/* Hands bytes of its text to the reader. */
static void layer_read(struct layer *t, struct slice bytes)
{
	struct views *v = t->views;
	if (!t->text)
		t->text = v->reader->begin(v->arg, &t->view, t->origin);
	if (!t->text) {
		fail(v, CAGE_ENOMEM);
		return;
	}
	enum cage_status st = v->reader->read(t->text, bytes);
	if (st != CAGE_OK)
		fail(v, st);
}

static bool has_budget(struct views *v, size_t n)
{
	v->n_decoded += n;
	return v->n_decoded <= LIMIT_VIEW_WORK * v->n_fed + LIMIT_VIEW_WORK_FREE;
}

/* Hands on what is in the buffer: to the reader, and to the next round of decoding. */
static void layer_deliver(struct layer *t)
{
	struct slice bytes = slice_of(t->buffer, t->n_buffer);
	t->n_buffer = 0;
	if (bytes.len == 0 || t->views->status != CAGE_OK)
		return;
	if (!has_budget(t->views, bytes.len)) {
		fail(t->views, CAGE_ELIMIT);
		return;
	}
	t->n_read += bytes.len;
	layer_read(t, bytes);
	if (t->view.depth < LIMIT_VIEW_DEPTH)
		layer_feed(t, bytes);
}

void layer_put(struct layer *parent, enum child child, const void *bytes, size_t n)
{
	struct layer *t = parent->children[child];
	struct slice rest = slice_of(bytes, n);
	while (t && rest.len > 0) {
		struct slice part = slice_head(rest, sizeof(t->buffer) - t->n_buffer);
		memcpy(t->buffer + t->n_buffer, part.ptr, part.len);
		t->n_buffer += part.len;
		rest = slice_from(rest, part.len);
		if (t->n_buffer == sizeof(t->buffer))
			layer_deliver(t);
	}
}

static bool run_is_late(const struct run *r, uint64_t now)
{
	return r->state == RUN_KEPT && now - r->began > LIMIT_VIEW_LATE;
}

/* Is a text so thin that what is in it would be found when the beginning has left already (LIMIT_LAG)? */
static bool layer_is_late(struct layer *t)
{
	uint64_t now = t->views->root->at;
	if (t->n_read == 0 || t->n_read - t->paced >= VIEW_PACE) {
		t->paced = t->n_read;
		t->paced_at = now;
	}
	return now - t->paced_at > LIMIT_VIEW_LATE || run_is_late(&t->base64.run, now) || run_is_late(&t->hex.run, now);
}

/* Hands on whatever waits in buffers below t: what has come in is read before the caller lets go of it. */
static void layer_flush(struct layer *t)
{
	if (!t->is_busy)
		return;
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (!t->children[i])
			continue;
		layer_deliver(t->children[i]);
		layer_flush(t->children[i]);
		if (layer_is_late(t->children[i]))
			fail(t->views, CAGE_ELIMIT);
	}
}

static void layer_end_text(struct layer *t)
{
	if (!t->text)
		return;
	enum cage_status st = t->views->reader->end(t->text);
	t->text = NULL;
	if (st != CAGE_OK)
		fail(t->views, st);
}

void layer_close(struct layer *parent, enum child child)
{
	struct layer *t = parent->children[child];
	if (!t)
		return;
	layer_deliver(t);
	layer_end(t);
	layer_end_text(t);
	parent->children[child] = NULL;
	t->views->n_open--;
	layer_give_back(t);
}

/* Closes everything below t without reading what is left. */
static void layer_drop_children(struct layer *t)
{
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct layer *child = t->children[i];
		if (!child)
			continue;
		layer_drop_children(child);
		layer_end_text(child);
		t->children[i] = NULL;
		t->views->n_open--;
		layer_give_back(child);
	}
}

void layer_report(const struct layer *t, enum view_kind kind, uint64_t at, uint64_t length, struct slice start)
{
	if (t->view.depth == 0 && t->views->status == CAGE_OK)
		t->views->reader->run(t->views->arg, kind, at, length, start);
}

/* ---- views ---- */

struct views *views_new(const struct view_reader *reader, void *arg)
{
	struct views *v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->reader = reader;
	v->arg = arg;
	v->classify = classify_best();
	v->root = layer_take(v);
	if (!v->root)
		views_free(&v);
	return v;
}

enum cage_status views_feed(struct views *v, struct slice piece)
{
	if (piece.len == 0)
		return v->status;
	v->n_fed += piece.len;
	layer_read(v->root, piece);
	layer_feed(v->root, piece);
	layer_flush(v->root);
	return v->status;
}

_Static_assert(VIEWS_LOOK <= BLOCKS * BLOCK && VIEWS_ROOM(1) == BLOCK, "whole blocks, classified at once");

bool views_may_decode(struct views *v, char *text, size_t n)
{
	size_t room = VIEWS_ROOM(n);
	if (n > VIEWS_LOOK)
		return true;
	memset(text + n, PADDING, room - n);
	return layer_may_open(v->root, (const unsigned char *)text, n);
}

enum cage_status views_end(struct views *v)
{
	layer_end(v->root);
	layer_end_text(v->root);
	return v->status;
}

void views_reset(struct views *v)
{
	layer_drop_children(v->root);
	layer_end_text(v->root);
	layer_init(v->root, v);
	v->status = CAGE_OK;
	v->n_fed = 0;
	v->n_decoded = 0;
}

void views_free(struct views **v)
{
	if (!*v)
		return;
	if ((*v)->root) {
		views_reset(*v);
		layer_give_back((*v)->root);
	}
	while ((*v)->free) {
		struct layer *t = (*v)->free;
		(*v)->free = t->next_free;
		free(t);
	}
	free(*v);
	*v = NULL;
}
