/* From a request's head to a decision: one canonical target, one host in all places, then the policy (THREATS T05, T09,
 * T10). */
#include "core/base/clock.h"
#include "proxy/auth.h"
#include "proxy/keyring.h"
#include "proxy/page.h"
#include "proxy/txn_ws.h"

/* The Host field, when there is one, must name the target's host and port. */
static enum reason check_host_field(struct txn *t, const char **detail)
{
	struct host host;
	uint16_t port;
	uint16_t expected_port = t->target.port;
	if (!t->req.has_host)
		return REASON_NONE;
	/* In a CONNECT a Host without port means the same host, whatever the port. */
	uint16_t default_port = t->req.form == TARGET_AUTHORITY    ? expected_port
				: t->target.scheme == SCHEME_HTTPS ? (uint16_t)443
								   : (uint16_t)80;
	if (authority_parse(t->req.host, default_port, &t->arena, &host, &port, detail) != CAGE_OK)
		return REASON_TARGET_MALFORMED;
	if (!host_eq(&host, &t->target.host) || port != expected_port)
		return REASON_AUTHORITY_MISMATCH;
	return REASON_NONE;
}

static enum reason parse_connect(struct txn *t, const char **detail)
{
	if (t->conn->is_bound) {
		*detail = "A CONNECT inside a CONNECT is not served.";
		return REASON_PROTOCOL_UNKNOWN;
	}
	if (authority_parse(t->req.target, 0, &t->arena, &t->target.host, &t->target.port, detail) != CAGE_OK) {
		t->target.host.text = SLICE_NONE;
		return REASON_TARGET_MALFORMED;
	}
	t->target.scheme = SCHEME_HTTPS;
	return check_host_field(t, detail);
}

static enum reason parse_absolute(struct txn *t, const char **detail)
{
	if (url_parse(t->req.target, &t->arena, &t->target, detail) != CAGE_OK) {
		t->target.host.text = SLICE_NONE;
		return REASON_TARGET_MALFORMED;
	}
	const struct conn *c = t->conn;
	if (!c->is_bound) {
		if (t->target.scheme == SCHEME_HTTP)
			return REASON_NONE;
		*detail = "An https URL goes through CONNECT, not as an absolute target.";
		return REASON_PROTOCOL_UNKNOWN;
	}
	if (t->target.scheme != c->origin.scheme || t->target.port != c->origin.port ||
	    !host_eq(&t->target.host, &c->origin.host))
		return REASON_AUTHORITY_MISMATCH;
	return REASON_NONE;
}

/* "/path" or "*": the host is the connection's. */
static enum reason parse_origin_form(struct txn *t, const char **detail)
{
	const struct conn *c = t->conn;
	if (!c->is_bound) {
		*detail = "This is a proxy: send an absolute URL or CONNECT.";
		return REASON_TARGET_MALFORMED;
	}
	t->target.scheme = c->origin.scheme;
	t->target.host = c->origin.host;
	t->target.port = c->origin.port;
	if (path_parse(t->req.target, &t->arena, &t->target, detail) != CAGE_OK)
		return REASON_TARGET_MALFORMED;
	return REASON_NONE;
}

static enum reason parse_target(struct txn *t, const char **detail)
{
	enum reason r = REASON_TARGET_MALFORMED;
	switch (t->req.form) {
	case TARGET_AUTHORITY:
		return parse_connect(t, detail);
	case TARGET_ABSOLUTE:
		r = parse_absolute(t, detail);
		break;
	case TARGET_ORIGIN:
	case TARGET_ASTERISK:
		r = parse_origin_form(t, detail);
		break;
	}
	if (r == REASON_NONE)
		r = check_host_field(t, detail);
	if (t->target.path.len > 0)
		t->logged_path = target_logged(&t->target, &t->arena);
	return r;
}

/* Who asks; only outside of a CONNECT, where proxy fields belong. SOCKS5 has asked for it already. */
static enum reason check_auth(struct txn *t)
{
	struct worker *w = t->worker;
	size_t seat = 0;
	if (!w->config->has_auth || t->conn->is_bound || t->conn->entrance == ENTRANCE_SOCKS)
		return REASON_NONE;
	enum reason reason = auth_check(w->seats, w->n_taken, &t->req, &seat);
	if (reason != REASON_NONE)
		return reason;
	conn_identify(t->conn, seat);
	return txn_take_policy(t) ? REASON_NONE : REASON_INTERNAL;
}

/* Port 443 is TLS only and 80 is plain only. */
static enum reason check_scheme(const struct txn *t, const char **detail)
{
	if (t->req.form == TARGET_AUTHORITY || t->target.scheme == SCHEME_HTTPS || t->target.port != 443)
		return REASON_NONE;
	*detail = "Port 443 is for TLS only.";
	return REASON_PROTOCOL_UNKNOWN;
}

/* About what the head takes when it is sent. */
static bool can_pay_head(struct txn *t)
{
	return worker_spend(t->worker, t->req.method.len + t->target.path.len + t->target.query.len +
					       fields_wire_size(t->req.fields, t->req.n_fields));
}

static enum reason inspected(struct txn *t, enum reason r, const char **detail)
{
	if (r != REASON_NONE)
		*detail = txn_finding_detail(t);
	return r;
}

enum reason txn_decide(struct txn *t, const char **detail)
{
	enum reason who = check_auth(t); /* first, since it says which policy holds */
	const struct policy *p = t->gen->policy;
	enum reason r = parse_target(t, detail);
	if (t->gen->keyring && !keyring_refresh(t->gen->keyring)) /* what is refused is searched too, for the log */
		return REASON_INTERNAL;
	if (r == REASON_NONE)
		r = who;
	if (r == REASON_NONE)
		r = check_scheme(t, detail);
	if (r != REASON_NONE)
		return r;
	if (page_is_host(&t->target.host))
		return page_decide(t);
	if (t->req.form == TARGET_AUTHORITY)
		t->verdict = policy_match_connect(p, &t->target.host, t->target.port, clock_wall_s());
	else
		t->verdict = policy_match_request(p, &t->target, t->req.method, clock_wall_s());
	r = upstream_check_name(&t->target.host, t->verdict.applies);
	if (r != REASON_NONE)
		return r;
	if (t->verdict.reason != REASON_NONE && !t->verdict.observe)
		return t->verdict.reason;
	r = txn_ws_check(t, detail);
	if (r == REASON_NONE)
		r = txn_plan_secrets(t, detail);
	if (r != REASON_NONE)
		return r;
	if (t->req.form == TARGET_AUTHORITY)
		return inspected(t, txn_inspect_name(t), detail);
	r = txn_check_overrides(t, detail);
	if (r == REASON_NONE && !can_pay_head(t)) {
		*detail = "it is all that this sandbox may send";
		return REASON_LIMIT_BUDGET;
	}
	return r == REASON_NONE ? inspected(t, txn_inspect_head(t), detail) : r;
}
