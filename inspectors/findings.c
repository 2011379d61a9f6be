/* What inspectors may call while they are at work, and what becomes of their findings. */
#include "core/audit/fingerprint.h"
#include "inspectors/chain_private.h"
#include "inspectors/guard.h"

static const struct inspector chain_itself = {.name = WORD("chain")};

/* When there is no room for all, the guard's come before other blocks, and these before flags. */
static unsigned weight(const struct finding *f)
{
	return f->by == &guard ? 2 : f->action == ACTION_BLOCK;
}

static void keep_finding(struct chain_run *r, const struct finding *f)
{
	if (r->n_findings < LIMIT_FINDINGS) {
		r->findings[r->n_findings++] = *f;
		return;
	}
	for (size_t i = 0; i < LIMIT_FINDINGS; i++) {
		if (weight(&r->findings[i]) >= weight(f))
			continue;
		r->findings[i] = *f;
		return;
	}
}

bool chain_is_same_finding(const struct finding *a, const struct finding *b)
{
	return a->by == b->by && a->reason == b->reason && slice_eq(a->id, b->id) && a->spot.place == b->spot.place &&
	       slice_eq(a->spot.name, b->spot.name) && a->fingerprint == b->fingerprint;
}

/* Has the field been told in which it stands, so that all of them together say nothing new? */
static bool is_seen_again(const struct finding *before, const struct finding *f)
{
	return f->spot.is_joined && before->by == f->by && before->reason == f->reason && slice_eq(before->id, f->id) &&
	       before->spot.place == f->spot.place && before->fingerprint == f->fingerprint;
}

/* The same value in the same place is one finding, however many views show it; the harder action counts. */
static bool is_known(struct chain_run *r, const struct finding *f)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		if (!chain_is_same_finding(&r->findings[i], f) && !is_seen_again(&r->findings[i], f))
			continue;
		if (f->action > r->findings[i].action)
			r->findings[i].action = f->action;
		return true;
	}
	return false;
}

/* Where something was found that must not be shown. Without a name of its field it is, or may be, one itself; but not where
 * only values are. */
static void hide(struct chain_run *r, const struct spot *spot)
{
	r->hides |= 1u << spot->place;
	if (spot->name.len == 0 && !spot->is_joined && (spot->place == PLACE_HEADER || spot->place == PLACE_TRAILER))
		r->hides_names = true;
}

/* Does a finding that blocks stop this request? The guard's do so when others are only observed; and so does what it
 * could not look at. */
static bool stops(const struct chain_run *r, const struct inspector *by)
{
	switch (r->mode) {
	case RUN_ENFORCES:
		return true;
	case RUN_OBSERVES:
		return by == &guard || (by == &chain_itself && r->known);
	case RUN_LISTS:
		return false;
	}
	return true;
}

/* Is it why the request is blocked? The first is; but what stops it comes before what is only observed, and the guard's
 * before all others. */
static bool is_the_block(const struct chain_run *r, const struct finding *f)
{
	if (!r->block.by)
		return true;
	return stops(r, f->by) && (r->state != RUN_BLOCKED || (f->by == &guard && r->block.by != &guard));
}

void chain_add_finding(struct chain_run *r, const struct finding *f)
{
	if (!is_known(r, f))
		keep_finding(r, f);
	if (f->id.len > 0 || f->by == &guard)
		hide(r, &f->spot);
	if (f->action != ACTION_BLOCK)
		return;
	if (is_the_block(r, f))
		r->block = *f;
	if (stops(r, f->by))
		r->state = RUN_BLOCKED;
}

void inspection_report_as(struct inspection *i, enum inspect_action action, enum reason reason, const struct spot *spot,
			  struct slice id, struct slice value)
{
	struct finding f = {.by = i->by, .action = action, .reason = reason, .spot = *spot, .id = id, .why = i->why};
	if (action == ACTION_OFF)
		return;
	if (value.len > 0)
		f.fingerprint = audit_fingerprint(slice_of(i->run->chain->key, CHAIN_KEY), value);
	chain_add_finding(i->run, &f);
}

void inspection_report(struct inspection *i, enum reason reason, const struct spot *spot, struct slice id,
		       struct slice value)
{
	inspection_report_as(i, i->conf->action, reason, spot, id, value);
}

void inspection_explain(struct inspection *i, const char *why)
{
	i->why = why;
}

void chain_fault(struct chain_run *r, enum reason reason)
{
	struct spot spot = {.place = r->state == RUN_HEAD ? PLACE_HEADER : PLACE_BODY, .offset = r->body_bytes};
	struct finding f = {.by = &chain_itself, .action = ACTION_BLOCK, .reason = reason, .spot = spot};
	chain_add_finding(r, &f);
	if (r->state != RUN_BLOCKED)
		r->state = RUN_BLIND;
}

void inspection_retry_after(struct inspection *i, uint64_t us)
{
	if (us > i->run->retry_after_us)
		i->run->retry_after_us = us;
}

const struct subject *inspection_subject(const struct inspection *i)
{
	return &i->run->subject;
}

const void *inspection_conf(const struct inspection *i)
{
	return i->conf->conf;
}

void *inspection_state(struct inspection *i)
{
	return i->own;
}

struct ledger *inspection_ledger(struct inspection *i)
{
	return i->run->chain->ledger;
}

struct external *inspection_external(struct inspection *i)
{
	return i->run->chain->external;
}

uint64_t inspection_raw_bytes(const struct inspection *i)
{
	return i->run->raw_bytes;
}

uint64_t inspection_body_bytes(const struct inspection *i)
{
	return i->run->body_bytes;
}

void chain_take_answer(struct inspection *i, enum inspect_result result)
{
	switch (result) {
	case INSPECT_PASS:
		return; /* one that holds goes on holding until it resumes */
	case INSPECT_HOLD:
		i->state = INSPECTION_HOLDING;
		return;
	case INSPECT_DONE:
		i->state = INSPECTION_DONE;
		return;
	case INSPECT_FAILED:
		break;
	}
	i->state = INSPECTION_DONE;
	chain_fault(i->run, REASON_INTERNAL);
}

void inspection_resume(struct inspection *i, enum inspect_result result)
{
	i->state = INSPECTION_ON;
	chain_take_answer(i, result);
	i->run->owner.resume(i->run->owner.arg);
}

void chain_put_view(struct text *out, const struct view *v)
{
	for (unsigned i = 0; i < v->depth; i++) {
		if (i > 0)
			text_put_char(out, '+');
		text_put(out, view_kind_text(v->kinds[i]));
	}
}
