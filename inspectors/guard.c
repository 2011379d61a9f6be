/* Judges what is found of known values and placeholders. A value is never right. A placeholder is right in the body of a
 * request to a rule that puts its secret there, as long as it is written so that it will be replaced; those of heads
 * are taken out before anything is searched (subject.search_head). */
#include "inspectors/guard.h"

#include "core/audit/fingerprint.h"
#include "inspectors/chain_private.h"

const struct inspector guard = {.name = WORD("guard")};

static bool may_be_in_body(const struct subject *s, struct slice placeholder)
{
	for (size_t i = 0; i < s->n_body_placeholders; i++)
		if (slice_eq(s->body_placeholders[i], placeholder))
			return true;
	return false;
}

static bool is_of_escapes(const struct view *v)
{
	for (unsigned i = 0; i < v->depth; i++)
		if (v->kinds[i] != VIEW_JSON && v->kinds[i] != VIEW_PERCENT)
			return false;
	return true;
}

/* May it be one that will be replaced? Secrets go into messages of data only; but what came before a control frame was
 * judged then. */
static bool is_of_body(const struct chain_run *r, struct slice bytes, const struct spot *spot)
{
	if (r->subject.message == MESSAGE_CONTROL && !r->looks_back)
		return false;
	const bool is_decoded = r->decoder || (r->grpc && r->grpc->decoder);
	return spot->place == PLACE_BODY && !is_decoded && is_of_escapes(&spot->view) &&
	       may_be_in_body(&r->subject, bytes);
}

/* It will be if it is plain, or has escapes of one kind. A text of escapes has what is plain around them too; so one that is
 * right is seen once more deeper down, sooner or later, where there are escapes of both kinds near it. It began no sooner
 * than that text. */
static void take_of_body(struct chain_run *r, const struct finding *f)
{
	if (f->spot.view.depth > 1) {
		if (!r->deep.by || f->spot.offset > r->deep.spot.offset)
			r->deep = *f;
	} else if (f->spot.offset >= r->placed) {
		r->placed = f->spot.offset + 1;
	}
}

void guard_end_body(struct chain_run *r)
{
	if (r->deep.by && r->deep.spot.offset >= r->placed)
		chain_add_finding(r, &r->deep);
}

static struct slice id_of(const struct chain_run *r, const struct known_item *item)
{
	const struct policy *p = r->chain->policy;
	if (item->kind == KNOWN_RANDOM_PLACEHOLDER || item->secret >= p->n_secrets)
		return SLICE_NONE;
	return p->secrets[item->secret].id;
}

void guard_found(struct chain_run *r, const struct known_item *item, struct slice bytes, const struct spot *spot)
{
	struct finding f = {.by = &guard,
			    .action = ACTION_BLOCK,
			    .reason = REASON_SECRET_MISPLACED,
			    .id = id_of(r, item),
			    .spot = *spot};
	if (item->kind == KNOWN_VALUE) {
		f.reason = REASON_SECRET_LEAKED;
		f.fingerprint = audit_fingerprint(slice_of(r->chain->key, CHAIN_KEY), item->bytes);
	} else if (is_of_body(r, bytes, spot)) {
		if (!r->looks_back) /* what is replaced is in one message */
			take_of_body(r, &f);
		return;
	}
	chain_add_finding(r, &f);
}
