/* A transaction and the inspector chain: what is shown to it, and what becomes of its answers. */
#include "core/base/clock.h"
#include "core/http/grpc.h"
#include "proxy/txn.h"

#define DETAIL_ROOM 256

static bool begin(struct txn *t)
{
	struct subject s = {.target = &t->target,
			    .method = t->req.method,
			    .head = t->req.form == TARGET_AUTHORITY ? NULL : &t->req,
			    .rule = t->verdict.applies,
			    .sandbox = t->conn->sandbox,
			    .txn = t->id,
			    .search_head = t->plan.head,
			    .search_target = t->plan.target,
			    .body_placeholders = t->body_placeholders,
			    .n_body_placeholders = t->n_body_placeholders};
	struct chain_owner owner = {.resume = txn_inspect_resumed, .arg = t};
	t->inspect = chain_begin(t->gen->chain, &t->arena, &s, txn_observes(t), &owner);
	return t->inspect != NULL;
}

/* What would have been refused, but for a rule that only observes: stands in the next line about this request. */
static void observe(struct txn *t, enum reason reason)
{
	if (t->logged != LOGGED_NOTHING) {
		t->observed_late = reason;
	} else if (t->verdict.reason == REASON_NONE) {
		t->verdict.reason = reason;
		t->verdict.observe = true;
	}
}

/* REASON_NONE, or why the transaction is to be refused. */
static enum reason judge(struct txn *t, enum chain_verdict verdict, uint64_t since_us)
{
	const struct finding *block = chain_block(t->inspect);
	uint64_t now = clock_mono_us();
	t->inspect_us += now - since_us;
	if (verdict == CHAIN_HOLD && !t->inspect_holds)
		t->hold_since_us = now;
	t->inspect_holds = verdict == CHAIN_HOLD;
	if (!t->inspect_holds)
		t->unanswered_bytes = 0;
	if (verdict == CHAIN_BLOCK)
		return block->reason;
	if (block)
		observe(t, block->reason);
	return REASON_NONE;
}

enum reason txn_inspect_name(struct txn *t)
{
	uint64_t since_us = clock_mono_us();
	return begin(t) ? judge(t, chain_name(t->inspect), since_us) : REASON_INTERNAL;
}

static bool has_messages(const struct message *head)
{
	return grpc_kind_of_message(head) != GRPC_NONE;
}

/* The name too: what was found in it at CONNECT, and let through, belongs into the lines of the requests. */
enum reason txn_inspect_head(struct txn *t)
{
	uint64_t since_us = clock_mono_us();
	if (!begin(t))
		return REASON_INTERNAL;
	bool is_coded =
		message_field(&t->req, SLICE("content-encoding")) || message_field(&t->req, SLICE("grpc-encoding"));
	t->lag = is_coded ? LIMIT_LAG_CODED : LIMIT_LAG;
	t->turn = has_messages(&t->req) ? LIMIT_MESSAGES_TURN : LIMIT_STREAM_IN;
	enum chain_verdict v = chain_name(t->inspect);
	if (v == CHAIN_PASS)
		v = chain_head(t->inspect);
	return judge(t, v, since_us);
}

enum reason txn_inspect_body(struct txn *t, struct slice piece)
{
	uint64_t since_us = clock_mono_us();
	t->unanswered_bytes += piece.len;
	return judge(t, chain_body(t->inspect, piece), since_us);
}

enum reason txn_inspect_end(struct txn *t)
{
	uint64_t since_us = clock_mono_us();
	t->inspected = true;
	return judge(t, chain_end(t->inspect, t->body.trailers, t->body.n_trailers), since_us);
}

enum reason txn_inspect_answered(struct txn *t)
{
	return judge(t, chain_verdict(t->inspect), t->hold_since_us);
}

/* ---- for the log and the client ---- */

static const struct slice places[] = {
	[PLACE_HOST] = WORD("host"),       [PLACE_METHOD] = WORD("method"), [PLACE_PATH] = WORD("path"),
	[PLACE_QUERY] = WORD("query"),     [PLACE_HEADER] = WORD("header"), [PLACE_BODY] = WORD("body"),
	[PLACE_TRAILER] = WORD("trailer"),
};

/* "body", "header:x-key" */
static void put_where(struct text *out, const struct txn *t, const struct spot *s)
{
	text_put(out, places[s->place]);
	if (s->name.len == 0 || chain_hides_names(t->inspect))
		return;
	text_put_char(out, ':');
	text_put(out, slice_head(s->name, LIMIT_FINDING_NAME));
}

/* A text that put makes, in the arena; empty without memory. */
static struct audit_finding to_log(struct txn *t, const struct finding *f)
{
	size_t room = LIMIT_FINDING_NAME + 64;
	char *buf = arena_alloc(&t->arena, 2 * room);
	struct text where = text_in(buf, buf ? room : 0);
	struct text view = text_in(buf + (buf ? room : 0), buf ? room : 0);
	put_where(&where, t, &f->spot);
	chain_put_view(&view, &f->spot.view);
	return (struct audit_finding){.inspector = f->by->name,
				      .action = f->action == ACTION_BLOCK ? DECISION_BLOCK : DECISION_FLAG,
				      .reason = f->reason,
				      .id = f->id,
				      .where = text_slice(&where),
				      .view = text_slice(&view),
				      .offset = f->spot.offset,
				      .fingerprint = f->fingerprint};
}

/* What is refused before the head was shown to the inspectors is searched for this alone. */
bool txn_hides(struct txn *t, enum place place)
{
	if (t->inspect)
		return chain_hides(t->inspect, place);
	if (!t->hides_known && t->target.host.text.len > 0) {
		struct subject s = {.target = &t->target, .method = t->req.method, .sandbox = t->conn->sandbox};
		t->hides = chain_places_to_hide(t->gen->chain, &t->arena, &s);
		t->hides_known = true;
	}
	return (t->hides >> place & 1) != 0;
}

/* What is new since the last line, with the finding that blocks before all others. Returns how many. */
static size_t new_findings(struct txn *t, const struct finding **out, size_t max)
{
	size_t n, count = 0;
	const struct finding *list = chain_findings(t->inspect, &n);
	const struct finding *block = chain_block(t->inspect);
	if (block && t->block_logged != block->reason && max > 0)
		out[count++] = block;
	t->block_logged = block ? block->reason : REASON_NONE;
	for (size_t i = t->n_findings_logged; i < n && count < max; i++)
		if (!block || !chain_is_same_finding(&list[i], block))
			out[count++] = &list[i];
	t->n_findings_logged = n;
	return count;
}

/* What is let out gets its line with the head, also for what was found behind it. */
static void set_stage(struct audit_event *e, const struct finding *first)
{
	bool is_stopped = e->decision == DECISION_BLOCK && !e->observed;
	bool is_behind = first->spot.place == PLACE_BODY || first->spot.place == PLACE_TRAILER;
	if (e->stage == STAGE_HEAD && !is_stopped && is_behind && e->reason == first->reason)
		e->stage = STAGE_BODY;
}

void txn_add_findings(struct txn *t, struct audit_event *e, size_t max)
{
	const struct finding *found[LIMIT_FINDINGS];
	struct audit_finding *out = t->inspect ? arena_array(&t->arena, max, sizeof(*out)) : NULL;
	size_t count = out ? new_findings(t, found, max < LIMIT_FINDINGS ? max : LIMIT_FINDINGS) : 0;
	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		out[i] = to_log(t, found[i]);
	e->findings = out;
	e->n_findings = count;
	if (e->decision == DECISION_ALLOW) {
		e->decision = DECISION_FLAG;
		e->reason = out[0].reason;
	}
	set_stage(e, found[0]);
}

const char *txn_finding_detail(struct txn *t)
{
	const struct finding *f = t->inspect ? chain_block(t->inspect) : NULL;
	if (!f || chain_verdict(t->inspect) != CHAIN_BLOCK)
		return NULL; /* one that is only observed is not why it is refused */
	if (f->id.len == 0)
		return f->why;
	char *buf = arena_alloc(&t->arena, DETAIL_ROOM);
	if (!buf)
		return NULL;
	struct text out = text_in(buf, DETAIL_ROOM - 1);
	text_put(&out, SLICE("found "));
	text_put(&out, f->id);
	text_put(&out, SLICE(" in "));
	put_where(&out, t, &f->spot);
	if (f->spot.view.depth > 0) {
		text_put(&out, SLICE(", encoded as "));
		chain_put_view(&out, &f->spot.view);
	}
	return buf;
}

uint64_t txn_retry_after_s(const struct txn *t)
{
	uint64_t us = t->inspect ? chain_retry_after_us(t->inspect) : 0;
	return us / 1000000 + (us % 1000000 > 0);
}
