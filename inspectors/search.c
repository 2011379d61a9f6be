/* A scanner of each set for every text that the views open; closed texts keep theirs for the next one. */
#include "inspectors/search.h"

#include <stdlib.h>

#include "inspectors/known/known_scan.h"

enum { CATALOGUE, OWN, SETS };

struct text_scan {
	struct search *search;
	struct text_scan *next; /* free, or in use */
	struct scan *scans[SETS];
	struct known_scan *known; /* NULL: nothing is known */
	struct view view;
	uint64_t offset; /* where the text begins in the outermost one */
};

struct search {
	struct views *views;
	const struct scan_set *sets[SETS];
	struct known_set *known;
	const struct search_cb *cb;
	void *arg; /* who is told; NULL: nobody */
	struct text_scan *free;
	size_t n_texts;
};

/* Where the outermost text has what is at that offset of this one. */
static uint64_t outermost(const struct text_scan *t, uint64_t offset)
{
	return t->view.depth == 0 ? offset : t->offset;
}

static void found(void *arg, const struct scan_hit *hit)
{
	struct text_scan *t = arg;
	struct search *s = t->search;
	if (s->arg)
		s->cb->hit(s->arg, hit, &t->view, outermost(t, hit->offset));
}

static void known_found_in(void *arg, const struct known_item *item, struct slice bytes, uint64_t offset)
{
	struct text_scan *t = arg;
	struct search *s = t->search;
	if (s->arg)
		s->cb->known(s->arg, item, bytes, &t->view, outermost(t, offset));
}

static void text_free(struct text_scan *t)
{
	for (size_t i = 0; i < SETS; i++)
		scan_free(&t->scans[i]);
	known_scan_free(&t->known);
	free(t);
}

/* A scanner of each set; false without memory. */
static bool text_equip(struct text_scan *t, const struct search *s)
{
	for (size_t i = 0; i < SETS; i++) {
		if (s->sets[i] && !(t->scans[i] = scan_new(s->sets[i], found, t)))
			return false;
	}
	return !s->known || (t->known = known_scan_new(s->known, known_found_in, t));
}

static struct text_scan *text_new(struct search *s)
{
	struct text_scan *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->search = s;
	s->n_texts++;
	if (text_equip(t, s))
		return t;
	text_free(t);
	return NULL;
}

static void give_back(struct text_scan *t)
{
	t->next = t->search->free;
	t->search->free = t;
}

static void *text_begin(void *arg, const struct view *view, uint64_t offset)
{
	struct search *s = arg;
	struct text_scan *t = s->free;
	if (t)
		s->free = t->next;
	else
		t = text_new(s);
	if (!t)
		return NULL;
	t->view = *view;
	t->offset = offset;
	for (size_t i = 0; i < SETS; i++) {
		if (t->scans[i] && scan_reset(t->scans[i], t) != CAGE_OK) {
			text_free(t);
			return NULL;
		}
	}
	if (t->known)
		known_scan_reset(t->known, t);
	return t;
}

/* What is known comes first: it says more than the format that it may have as well. */
static enum cage_status text_read(void *text, struct slice bytes)
{
	struct text_scan *t = text;
	enum cage_status st = t->known ? known_scan_feed(t->known, bytes) : CAGE_OK;
	for (size_t i = 0; i < SETS && st == CAGE_OK; i++)
		if (t->scans[i])
			st = scan_feed(t->scans[i], bytes);
	return st;
}

static enum cage_status text_end(void *text)
{
	struct text_scan *t = text;
	enum cage_status st = t->known ? known_scan_end(t->known) : CAGE_OK;
	for (size_t i = 0; i < SETS && st == CAGE_OK; i++)
		if (t->scans[i])
			st = scan_end(t->scans[i]);
	give_back(t);
	return st;
}

static void run_ended(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start)
{
	struct search *s = arg;
	if (s->arg && s->cb->run)
		s->cb->run(s->arg, kind, offset, length, start);
}

static const struct view_reader reader = {.begin = text_begin, .read = text_read, .end = text_end, .run = run_ended};

struct search *search_new(const struct search_sets *sets, const struct search_cb *cb)
{
	struct search *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->sets[CATALOGUE] = sets->catalogue;
	s->sets[OWN] = sets->own;
	s->known = sets->known ? known_set_ref(sets->known) : NULL;
	s->cb = cb;
	s->views = views_new(&reader, s);
	if (!s->views)
		search_free(&s);
	return s;
}

void search_start(struct search *s, void *arg)
{
	s->arg = NULL; /* what an earlier text still finds at its end is nobody's any more */
	views_reset(s->views);
	s->arg = arg;
}

static bool looks_for_something(const struct search *s)
{
	return s->sets[CATALOGUE] || s->sets[OWN] || s->known || s->cb->run;
}

enum cage_status search_feed(struct search *s, struct slice piece)
{
	return looks_for_something(s) ? views_feed(s->views, piece) : CAGE_OK;
}

enum cage_status search_end(struct search *s)
{
	return looks_for_something(s) ? views_end(s->views) : CAGE_OK;
}

const struct known_set *search_known(const struct search *s)
{
	return s->known;
}

size_t search_size(const struct search *s)
{
	return s->n_texts;
}

void search_free(struct search **sp)
{
	struct search *s = *sp;
	if (!s)
		return;
	s->arg = NULL;
	views_free(&s->views);
	while (s->free) {
		struct text_scan *t = s->free;
		s->free = t->next;
		text_free(t);
	}
	if (s->known)
		known_set_unref(&s->known);
	free(s);
	*sp = NULL;
}
