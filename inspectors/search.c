/* A scanner of each set for every text that the views open; closed texts keep theirs for the next one. */
#include "inspectors/search.h"

#include <stdlib.h>

enum { CATALOGUE, OWN, SETS };

struct text_scan {
	struct search *search;
	struct text_scan *next; /* free, or in use */
	struct scan *scans[SETS];
	struct view view;
	uint64_t offset; /* where the text begins in the outermost one */
};

struct search {
	struct views *views;
	const struct scan_set *sets[SETS];
	const struct search_cb *cb;
	void *arg; /* who is told; NULL: nobody */
	struct text_scan *free;
	size_t n_texts;
};

static void found(void *arg, const struct scan_hit *hit)
{
	struct text_scan *t = arg;
	struct search *s = t->search;
	if (s->arg)
		s->cb->hit(s->arg, hit, &t->view, t->view.depth == 0 ? hit->offset : t->offset);
}

static void text_free(struct text_scan *t)
{
	for (size_t i = 0; i < SETS; i++)
		scan_free(&t->scans[i]);
	free(t);
}

static struct text_scan *text_new(struct search *s)
{
	struct text_scan *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->search = s;
	s->n_texts++;
	for (size_t i = 0; i < SETS; i++) {
		if (!s->sets[i])
			continue;
		t->scans[i] = scan_new(s->sets[i], found, t);
		if (!t->scans[i]) {
			text_free(t);
			return NULL;
		}
	}
	return t;
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
	return t;
}

static enum cage_status text_read(void *text, struct slice bytes)
{
	struct text_scan *t = text;
	enum cage_status st = CAGE_OK;
	for (size_t i = 0; i < SETS && st == CAGE_OK; i++)
		if (t->scans[i])
			st = scan_feed(t->scans[i], bytes);
	return st;
}

static enum cage_status text_end(void *text)
{
	struct text_scan *t = text;
	enum cage_status st = CAGE_OK;
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
	return s->sets[CATALOGUE] || s->sets[OWN] || s->cb->run;
}

enum cage_status search_feed(struct search *s, struct slice piece)
{
	return looks_for_something(s) ? views_feed(s->views, piece) : CAGE_OK;
}

enum cage_status search_end(struct search *s)
{
	return looks_for_something(s) ? views_end(s->views) : CAGE_OK;
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
	views_free(&s->views);
	while (s->free) {
		struct text_scan *t = s->free;
		s->free = t->next;
		text_free(t);
	}
	free(s);
	*sp = NULL;
}
