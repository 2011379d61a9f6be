/* From a decision to the middle of its line. The order of the keys is fixed: docs/log.md and body.c know it too. */
#include "core/audit/event.h"

#include "core/audit/body.h"

static const struct slice kinds[] = {
	[AUDIT_START] = WORD("start"),     [AUDIT_POLICY] = WORD("policy"),     [AUDIT_CONNECT] = WORD("connect"),
	[AUDIT_REQUEST] = WORD("request"), [AUDIT_RESPONSE] = WORD("response"), [AUDIT_ERROR] = WORD("error"),
	[AUDIT_TOOL] = WORD("tool"),       [AUDIT_MESSAGE] = WORD("message"),   [AUDIT_DNS] = WORD("dns"),
	[AUDIT_STOP] = WORD("stop"),       [AUDIT_SECRET] = WORD("secret"),
};

static const struct slice decisions[] = {
	[DECISION_NONE] = WORD(""),       [DECISION_ALLOW] = WORD("allow"), [DECISION_FLAG] = WORD("flag"),
	[DECISION_BLOCK] = WORD("block"), [DECISION_ERROR] = WORD("error"),
};

static const struct slice stages[] = {
	[STAGE_NONE] = WORD(""),
	[STAGE_CONNECT] = WORD("connect"),
	[STAGE_TLS] = WORD("tls"),
	[STAGE_HEAD] = WORD("head"),
	[STAGE_BODY] = WORD("body"),
	[STAGE_MESSAGE] = WORD("message"),
	[STAGE_UPSTREAM] = WORD("upstream"),
	[STAGE_RESPONSE] = WORD("response"),
	[STAGE_DNS] = WORD("dns"),
	[STAGE_POLICY] = WORD("policy"),
	[STAGE_LOG] = WORD("log"),
};

struct slice audit_decision_text(enum audit_decision d)
{
	return decisions[d];
}

/* Each key comes with its comma and colon: `,"host":`. */
static void put_string(struct text *t, struct slice key, struct slice value)
{
	if (value.len == 0)
		return;
	text_put(t, key);
	text_put_char(t, '"');
	text_put_json(t, value);
	text_put_char(t, '"');
}

/* A word of ours, which needs no escapes. */
static void put_word(struct text *t, struct slice key, struct slice word)
{
	if (word.len == 0)
		return;
	text_put(t, key);
	text_put_char(t, '"');
	text_put(t, word);
	text_put_char(t, '"');
}

static void put_number(struct text *t, struct slice key, uint64_t value)
{
	text_put(t, key);
	text_put_u64(t, value);
}

/* Where 0 means that there is none. */
static void put_nonzero(struct text *t, struct slice key, uint64_t value)
{
	if (value != 0)
		put_number(t, key, value);
}

void audit_put_id(struct text *t, struct slice key, uint64_t id)
{
	if (id == 0)
		return;
	text_put(t, key);
	text_put_char(t, '"');
	text_put_hex64(t, id);
	text_put_char(t, '"');
}

void audit_policy_init(struct audit_policy *p, struct slice name, struct slice sha, uint64_t gen)
{
	struct text t = text_in(p->text, sizeof(p->text));
	put_string(&t, SLICE(",\"policy\":"), name);
	put_string(&t, SLICE(",\"policy_sha\":"), sha);
	put_nonzero(&t, SLICE(",\"gen\":"), gen);
	p->len = text_ok(&t) ? t.len : 0;
}

struct slice audit_policy_text(const struct audit_policy *p)
{
	return slice_of(p->text, p->len);
}

static void put_ms(struct text *t, struct slice key, uint64_t us)
{
	unsigned rest = (unsigned)(us % 1000);
	char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
	put_number(t, key, us / 1000);
	text_put(t, slice_of(decimals, sizeof(decimals)));
}

static void put_decision(struct text *t, const struct audit_event *e)
{
	put_word(t, SLICE(",\"decision\":"), decisions[e->decision]);
	if (e->decision == DECISION_BLOCK)
		text_put(t, e->observed ? SLICE(",\"enforced\":false") : SLICE(",\"enforced\":true"));
	put_word(t, SLICE(",\"reason\":"), reason_code(e->reason));
	put_word(t, SLICE(",\"stage\":"), stages[e->stage]);
	put_string(t, SLICE(",\"rule\":"), e->rule);
}

static void put_target(struct text *t, const struct audit_event *e)
{
	char buf[ADDR_TEXT];
	put_string(t, SLICE(",\"method\":"), e->method);
	put_string(t, SLICE(",\"scheme\":"), e->scheme);
	put_string(t, SLICE(",\"host\":"), e->host);
	put_nonzero(t, SLICE(",\"port\":"), e->port);
	put_string(t, SLICE(",\"path\":"), e->path);
	put_string(t, SLICE(",\"alpn\":"), e->alpn);
	if (e->address)
		put_word(t, SLICE(",\"address\":"), addr_format(e->address, buf));
}

static void put_outcome(struct text *t, const struct audit_event *e)
{
	if (e->status > 0)
		put_number(t, SLICE(",\"status\":"), (uint64_t)e->status);
	if (e->has_bytes) {
		put_number(t, SLICE(",\"bytes_out\":"), e->bytes_out);
		put_number(t, SLICE(",\"bytes_in\":"), e->bytes_in);
		put_number(t, SLICE(",\"inspected_out\":"), e->inspected_out);
		put_number(t, SLICE(",\"inspected_in\":"), e->inspected_in);
	}
	if (e->has_times) {
		put_ms(t, SLICE(",\"ms\":{\"dns\":"), e->us_dns);
		put_ms(t, SLICE(",\"connect\":"), e->us_connect);
		put_ms(t, SLICE(",\"tls\":"), e->us_tls);
		put_ms(t, SLICE(",\"inspect\":"), e->us_inspect);
		put_ms(t, SLICE(",\"total\":"), e->us_total);
		text_put_char(t, '}');
	}
}

static void put_finding(struct text *t, const struct audit_finding *f)
{
	put_string(t, SLICE("{\"inspector\":"), f->inspector);
	put_word(t, SLICE(",\"action\":"), decisions[f->action]);
	put_word(t, SLICE(",\"reason\":"), reason_code(f->reason));
	put_string(t, SLICE(",\"id\":"), f->id);
	put_string(t, SLICE(",\"where\":"), f->where);
	put_string(t, SLICE(",\"view\":"), f->view);
	put_number(t, SLICE(",\"offset\":"), f->offset);
	audit_put_id(t, SLICE(",\"fingerprint\":"), f->fingerprint);
	text_put_char(t, '}');
}

static void put_findings(struct text *t, const struct audit_event *e)
{
	if (e->n_findings == 0)
		return;
	text_put(t, SLICE(",\"findings\":["));
	for (size_t i = 0; i < e->n_findings; i++) {
		if (i > 0)
			text_put_char(t, ',');
		put_finding(t, &e->findings[i]);
	}
	text_put_char(t, ']');
}

static void put_ids(struct text *t, struct slice key, const struct slice *ids, size_t n)
{
	if (n == 0)
		return;
	text_put(t, key);
	for (size_t i = 0; i < n && i < LIMIT_LOG_SECRETS; i++) {
		text_put_char(t, i == 0 ? '[' : ',');
		text_put_char(t, '"');
		text_put_json(t, ids[i]);
		text_put_char(t, '"');
	}
	text_put_char(t, ']');
}

void audit_event_write(struct text *t, const struct audit_event *e)
{
	put_word(t, SLICE("\"event\":"), kinds[e->kind]);
	put_string(t, SLICE(",\"sandbox\":"), e->sandbox);
	text_put(t, e->policy);
	audit_put_id(t, SLICE(",\"conn\":"), e->conn);
	audit_put_id(t, SLICE(",\"txn\":"), e->txn);
	put_decision(t, e);
	put_target(t, e);
	put_outcome(t, e);
	put_findings(t, e);
	put_ids(t, SLICE(",\"injected\":"), e->injected, e->n_injected);
	put_ids(t, SLICE(",\"redacted\":"), e->redacted, e->n_redacted);
}
