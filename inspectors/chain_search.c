/* Searches of a run: each reports what it finds to the inspector whose format it is, or to the guard. They are kept for the
 * next run. */
#include <stdlib.h>

#include "core/audit/fingerprint.h"
#include "inspectors/chain_private.h"
#include "inspectors/guard.h"

/* Where in the body the text begins that is searched. */
static uint64_t text_start(const struct chain_run *r)
{
	return r->looks_back ? r->back_start : r->text_start;
}

static struct spot spot_of(const struct chain_run *r, const struct view *view, uint64_t offset)
{
	struct spot spot = {.place = PLACE_BODY, .offset = text_start(r) + offset};
	if (r->head)
		spot = head_text_spot(r->head, r->look == LOOK_PART ? r->part + offset : offset);
	if (view)
		spot.view = *view;
	return spot;
}

static struct inspection *owner_of(struct chain_run *r, const struct format *f)
{
	const struct chain_conf *conf = r->chain->conf;
	if (f >= conf->formats && f < conf->formats + conf->n_formats)
		return &r->list[conf->owners[f - conf->formats]];
	return &r->list[catalogue_owner()];
}

/* Was it found in some part already? */
static bool is_reported(const struct chain_run *r, const struct scan_hit *hit)
{
	uint64_t fingerprint = audit_fingerprint(slice_of(r->chain->key, CHAIN_KEY), hit->value);
	for (size_t i = 0; i < r->n_findings; i++)
		if (slice_eq(r->findings[i].id, hit->format->id) && r->findings[i].fingerprint == fingerprint)
			return true;
	return false;
}

/* What is encoded in a head is reported when its parts are looked at. */
static bool is_for_later(struct chain_run *r, const struct view *view)
{
	if (!r->head || view->depth == 0 || r->look >= LOOK_PART)
		return false;
	r->look = LOOK_WHOLE_ENCODED;
	return true;
}

static void on_hit(void *arg, const struct scan_hit *hit, const struct view *view, uint64_t offset)
{
	struct chain_run *r = arg;
	if (is_for_later(r, view))
		return;
	if (r->head && r->look == LOOK_ROUGH && is_reported(r, hit))
		return;
	if (r->looks_back && chain_stream_has_told(r, hit))
		return;
	struct spot spot = spot_of(r, view, offset);
	struct inspection *i = owner_of(r, hit->format);
	if (chain_asks(i))
		chain_take_answer(i, i->by->on_hit(i, hit, &spot));
}

static void on_known(void *arg, const struct known_item *item, struct slice bytes, const struct view *view,
		     uint64_t offset)
{
	struct chain_run *r = arg;
	if (is_for_later(r, view))
		return;
	struct spot spot = spot_of(r, view, offset);
	guard_found(r, item, bytes, &spot);
}

static void on_run(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start)
{
	struct chain_run *r = arg;
	if ((r->head && r->look >= LOOK_PART) || r->looks_back)
		return; /* was told already */
	struct spot spot = spot_of(r, NULL, offset);
	OFFER(r, on_run, (to, kind, length, &spot, start))
}

static const struct search_cb cb_hits_and_runs = {.hit = on_hit, .known = on_known, .run = on_run};
static const struct search_cb cb_hits = {.hit = on_hit, .known = on_known};

static bool anybody_wants_runs(const struct chain_conf *conf)
{
	for (size_t i = 0; i < n_inspectors; i++)
		if (inspectors[i]->on_run && conf->list[i].action != ACTION_OFF)
			return true;
	return false;
}

static struct chain_search *chain_search_new(struct chain *c, struct known_set *known)
{
	struct chain_search *cs = calloc(1, sizeof(*cs));
	struct search_sets sets = {.own = c->own, .known = known};
	if (!cs)
		return NULL;
	if (c->conf->list[catalogue_owner()].action != ACTION_OFF)
		sets.catalogue = scan_catalogue();
	cs->search = search_new(&sets, anybody_wants_runs(c->conf) ? &cb_hits_and_runs : &cb_hits);
	if (cs->search)
		return cs;
	free(cs);
	return NULL;
}

/* At work, of all chains of this process: an agent chooses how many bodies it sends at once. */
static size_t n_searches;

/* A kept one, if it looks for what was known when the run began; NULL: there is none. */
static struct chain_search *take_spare(const struct chain_run *r)
{
	struct chain *c = r->chain;
	struct chain_search *cs = r->known == c->known ? c->spare : NULL;
	if (cs) {
		c->spare = cs->next;
		c->n_spare--;
	}
	return cs;
}

/* A search that reports to the run, or NULL with a fault. */
struct chain_search *chain_search_take(struct chain_run *r)
{
	if (n_searches == LIMIT_SEARCHES) {
		chain_fault(r, REASON_LIMIT_HOLD);
		return NULL;
	}
	struct chain_search *cs = take_spare(r);
	if (!cs)
		cs = chain_search_new(r->chain, r->known);
	if (!cs) {
		chain_fault(r, REASON_INTERNAL);
		return NULL;
	}
	n_searches++;
	search_start(cs->search, r);
	return cs;
}

static bool is_worth_keeping(const struct chain *c, const struct search *s)
{
	return c->n_spare < LIMIT_SEARCHES_SPARE && search_size(s) <= LIMIT_SEARCH_KEPT && search_known(s) == c->known;
}

void chain_search_give_back(struct chain *c, struct chain_search **cs)
{
	if (!*cs)
		return;
	n_searches--;
	if (is_worth_keeping(c, (*cs)->search)) {
		search_start((*cs)->search, NULL);
		(*cs)->next = c->spare;
		c->spare = *cs;
		c->n_spare++;
	} else {
		search_free(&(*cs)->search);
		free(*cs);
	}
	*cs = NULL;
}

/* Too many encodings in each other are what nobody sends by accident. */
void chain_search_result(struct chain_run *r, enum cage_status st)
{
	if (st != CAGE_OK && chain_looks(r))
		chain_fault(r, st == CAGE_ELIMIT ? REASON_BODY_UNDECODABLE : REASON_INTERNAL);
}

static void search_text(struct chain_run *r, struct chain_search *cs, struct slice text)
{
	enum cage_status st = search_feed(cs->search, text);
	if (st == CAGE_OK)
		st = search_end(cs->search);
	chain_search_result(r, st);
}

/* The next text in the same search. */
static void search_next(struct chain_run *r, struct chain_search *cs, struct slice text)
{
	if (!chain_looks(r))
		return;
	search_start(cs->search, r);
	search_text(r, cs, text);
}

static void search_part(struct chain_run *r, struct chain_search *cs, size_t from, size_t to)
{
	r->part = from;
	search_next(r, cs, slice_head(slice_from(r->head->text, from), to - from));
}

/* The name of a field and its value apart. */
static void search_parts(struct chain_run *r, struct chain_search *cs)
{
	const struct head_text *h = r->head;
	r->look = LOOK_PART;
	for (size_t i = 0; i < h->n_parts; i++) {
		const struct head_part *p = &h->parts[i];
		size_t end = i + 1 < h->n_parts ? h->parts[i + 1].start : h->text.len;
		if (p->name.len > 0)
			search_part(r, cs, p->start, p->start + p->name.len);
		search_part(r, cs, p->start + p->name.len, end);
	}
}

void chain_search_head(struct chain_run *r, const struct head_text *text)
{
	struct chain_search *cs = chain_search_take(r);
	if (!cs)
		return;
	r->head = text;
	r->look = LOOK_WHOLE;
	search_text(r, cs, text->text);
	if (r->look == LOOK_WHOLE_ENCODED) {
		search_parts(r, cs);
		r->look = LOOK_ROUGH; /* for what stands in no part alone */
		search_next(r, cs, text->text);
	}
	r->head = NULL;
	chain_search_give_back(r->chain, &cs);
}

void chain_search_free_all(struct chain *c)
{
	while (c->spare) {
		struct chain_search *cs = c->spare;
		c->spare = cs->next;
		search_free(&cs->search);
		free(cs);
	}
	c->n_spare = 0;
}
