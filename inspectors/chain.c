/* Running the inspectors. A step of the chain offers its piece to each inspector that is on and not done, in order; the
 * first finding that blocks ends it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "inspectors/chain_private.h"

enum chain_verdict chain_verdict(const struct chain_run *r)
{
	if (r->state == RUN_BLOCKED)
		return CHAIN_BLOCK;
	for (size_t i = 0; i < n_inspectors; i++)
		if (r->list[i].state == INSPECTION_HOLDING)
			return CHAIN_HOLD;
	return CHAIN_PASS;
}

/* ---- the head ---- */

static void search_name(struct chain_run *r)
{
	struct head_text text;
	if (subject_host_is_listed(&r->subject))
		return;
	if (head_text_make_name(&r->subject, r->arena, &text) == CAGE_OK)
		chain_search_head(r, &text);
	else
		chain_fault(r, REASON_INTERNAL);
}

static void search_head(struct chain_run *r)
{
	struct head_text text;
	if (head_text_make(&r->subject, r->arena, &text) == CAGE_OK)
		chain_search_head(r, &text);
	else
		chain_fault(r, REASON_INTERNAL);
}

/* Nothing was searched behind what ended the run, and yet it is going to be in the log. */
static enum chain_verdict head_verdict(struct chain_run *r)
{
	if (!chain_looks(r))
		r->hides |= chain_places_to_hide(r->chain, r->arena, &r->subject);
	return chain_verdict(r);
}

enum chain_verdict chain_name(struct chain_run *r)
{
	OFFER(r, on_name, (to))
	if (chain_verdict(r) == CHAIN_HOLD)
		chain_fault(r, REASON_INTERNAL); /* a name is judged at once, or not at all */
	if (chain_looks(r))
		search_name(r);
	return head_verdict(r);
}

enum chain_verdict chain_head(struct chain_run *r)
{
	OFFER(r, on_head, (to))
	if (chain_looks(r))
		search_head(r);
	return head_verdict(r);
}

/* Nobody is told what is found, but for the places that must not be shown. */
static void no_owner(void *arg)
{
	(void)arg;
}

unsigned chain_places_to_hide(struct chain *c, struct arena *arena, const struct subject *subject)
{
	static const struct message no_head;
	struct chain_owner owner = {.resume = no_owner};
	struct subject s = *subject;
	s.head = s.search_head = &no_head;
	unsigned all = subject_host_is_listed(&s) ? ~(1u << PLACE_HOST) : UINT_MAX;
	struct chain_run *r = chain_begin(c, arena, &s, true, &owner);
	if (!r)
		return all;
	r->mode = RUN_LISTS;
	search_head(r);
	if (chain_looks(r))
		search_name(r);
	unsigned hides = chain_looks(r) ? r->hides : all;
	chain_finish(&r);
	return hides;
}

bool chain_name_is_harmless(struct chain *c, struct slice name)
{
	if (!c->harmless) {
		size_t n;
		const struct format *catalogue = scan_catalogue_formats(&n);
		c->harmless = harmless_new();
		if (!c->harmless)
			return false;
		harmless_add(c->harmless, catalogue, n);
		harmless_add(c->harmless, c->conf->formats, c->conf->n_formats);
	}
	return harmless_is_name(c->harmless, c->known, name);
}

/* ---- life ---- */

struct chain *chain_new(const struct policy *p, struct ledger *ledger, const unsigned char key[CHAIN_KEY])
{
	struct chain *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->policy = p;
	c->conf = p->inspectors;
	c->ledger = ledger;
	memcpy(c->key, key, CHAIN_KEY);
	if (c->conf->n_formats == 0)
		return c;
	c->own = scan_set_load(c->conf->formats, c->conf->n_formats, &c->conf->databases);
	if (!c->own)
		chain_free(&c);
	return c;
}

void chain_free(struct chain **cp)
{
	struct chain *c = *cp;
	if (!c)
		return;
	chain_set_known(c, NULL);
	chain_search_free_all(c);
	scan_set_free(&c->own);
	harmless_free(&c->harmless);
	explicit_bzero(c->key, sizeof(c->key));
	free(c);
	*cp = NULL;
}

void chain_set_external(struct chain *c, struct external *e)
{
	c->external = e;
}

void chain_set_known(struct chain *c, struct known_set *known)
{
	struct known_set *next = known && !known_set_is_empty(known) ? known_set_ref(known) : NULL;
	if (next != c->known)
		chain_search_free_all(c); /* they look for what was known before */
	if (c->known)
		known_set_unref(&c->known);
	c->known = next;
}

struct chain_run *chain_begin(struct chain *c, struct arena *arena, const struct subject *subject, bool observe,
			      const struct chain_owner *owner)
{
	struct chain_run *r = arena_alloc(arena, sizeof(*r));
	struct inspection *list = arena_array(arena, n_inspectors, sizeof(*list));
	if (!r || !list)
		return NULL;
	*r = (struct chain_run){.chain = c,
				.arena = arena,
				.subject = *subject,
				.mode = observe ? RUN_OBSERVES : RUN_ENFORCES,
				.list = list,
				.owner = *owner};
	for (size_t i = 0; i < n_inspectors; i++) {
		list[i] = (struct inspection){.by = inspectors[i],
					      .conf = &c->conf->list[i],
					      .run = r,
					      .own = arena_alloc(arena, inspectors[i]->state_size)};
		if (!list[i].own)
			return NULL;
	}
	r->known = c->known ? known_set_ref(c->known) : NULL;
	return r;
}

const struct finding *chain_block(const struct chain_run *r)
{
	return r->block.by ? &r->block : NULL;
}

bool chain_hides(const struct chain_run *r, enum place place)
{
	return (r->hides >> place & 1) != 0;
}

bool chain_hides_names(const struct chain_run *r)
{
	return r->hides_names;
}

uint64_t chain_retry_after_us(const struct chain_run *r)
{
	return r->retry_after_us;
}

const struct finding *chain_findings(const struct chain_run *r, size_t *n)
{
	*n = r->n_findings;
	return r->findings;
}

void chain_finish(struct chain_run **rp)
{
	struct chain_run *r = *rp;
	if (!r)
		return;
	*rp = NULL;
	for (size_t i = 0; i < n_inspectors; i++)
		if (r->list[i].by->release)
			r->list[i].by->release(&r->list[i]);
	decoder_free(&r->decoder);
	if (r->grpc)
		grpc_inflate_release(r->grpc);
	chain_stream_free(&r->own_stream);
	chain_search_give_back(r->chain, &r->body);
	chain_search_give_back(r->chain, &r->joined);
	for (size_t i = 0; i < LIMIT_CODINGS + 1; i++)
		chain_search_give_back(r->chain, &r->coded[i]);
	for (size_t i = 0; i < 2; i++)
		chain_search_give_back(r->chain, &r->spliced[i]);
	if (r->known)
		known_set_unref(&r->known);
}
