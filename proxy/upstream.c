/* The way to a real server:
 *
 *	RESOLVE -> DIAL -> TLS -> handed over        pins, address literals and names that cage-dns has answered start at
 *	                                             DIAL, plain http ends there
 *
 * Every address is vetted before it is dialled, and only vetted ones are. A server that chooses HTTP/2 goes on in
 * upstream_h2.c. */
#include <errno.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lru.h"
#include "core/net/vet.h"
#include "proxy/bindings.h"
#include "proxy/pool.h"
#include "proxy/upstream_private.h"

/* ---- keys ---- */

static bool make_key(char key[UPSTREAM_KEY], size_t *len, const struct upstream_want *want)
{
	struct text t = text_in(key, UPSTREAM_KEY);
	text_put(&t, want->sandbox);
	text_put_char(&t, ' ');
	text_put_u64(&t, want->gen->policy->gen);
	text_put(&t, want->tls ? SLICE(" tls ") : SLICE(" plain "));
	text_put(&t, want->rule ? want->rule->id : SLICE(""));
	text_put_char(&t, ' ');
	text_put(&t, want->target->host.text);
	text_put_char(&t, ' ');
	text_put_u64(&t, want->target->port);
	*len = t.len;
	return text_ok(&t);
}

/* ---- idle connections ---- */

static void idle_ended(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	struct upstream *up = arg;
	pool_remove(up->worker->pool, up);
	upstream_close(&up);
}

/* A server that speaks without being asked is not one to reuse. */
static void idle_data(struct stream *s, void *arg)
{
	idle_ended(s, CAGE_EPROTO, arg);
}

static void idle_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb idle_cb = {
	.on_ready = idle_nothing, .on_data = idle_data, .on_drained = idle_nothing, .on_end = idle_ended};

void upstream_close(struct upstream **upp)
{
	struct upstream *up = *upp;
	if (!up)
		return;
	*upp = NULL;
	if (up->stream && stream_ssl(up->stream))
		SSL_set_app_data(stream_ssl(up->stream), NULL); /* a late ticket finds nobody */
	stream_close(&up->stream);
	generation_unref(&up->gen);
	free(up);
}

void upstream_finish(struct upstream **upp)
{
	if (*upp && stream_ssl((*upp)->stream))
		SSL_set_app_data(stream_ssl((*upp)->stream), NULL);
	if (*upp)
		stream_finish(&(*upp)->stream);
	upstream_close(upp);
}

void upstream_abort(struct upstream **upp)
{
	if (*upp)
		stream_reset(&(*upp)->stream);
	upstream_close(upp);
}

void upstream_release(struct upstream **upp)
{
	struct upstream *up = *upp;
	*upp = NULL;
	if (up->is_h2 || stream_input(up->stream).len > 0 || stream_has_ended(up->stream) ||
	    stream_unsent(up->stream) > 0 || up->worker->state != WORKER_SERVING || !generation_is_current(up->gen)) {
		upstream_close(&up);
		return;
	}
	up->idle_since_us = loop_now_us(up->worker->loop);
	stream_set_owner(up->stream, &idle_cb, up);
	stream_set_deadline(up->stream, 0);
	pool_put(up->worker->pool, up);
}

bool upstream_is_bound(struct worker *w, const struct upstream_want *want, const struct addr *addr)
{
	const struct policy *p = want->gen->policy;
	const struct host *host = &want->target->host;
	struct addr addrs[LIMIT_ANSWERS];
	if (!w->bindings || p->dns.mode == DNS_SYNTHETIC || host->kind == HOST_ADDRESS || policy_pin_for(p, host))
		return true;
	size_t n = bindings_addresses(w->bindings, host->text, addrs);
	for (size_t i = 0; i < n; i++)
		if (addr_eq(&addrs[i], addr))
			return true;
	return n == 0 && !p->bound;
}

/* Those that lead elsewhere by now are closed. */
static struct upstream *take_idle(struct worker *w, const struct upstream_want *want, struct slice key)
{
	struct upstream *up = pool_take(w->pool, key);
	while (up && !upstream_is_bound(w, want, &up->addr)) {
		upstream_close(&up);
		up = pool_take(w->pool, key);
	}
	return up;
}

struct upstream *upstream_take_pooled(struct worker *w, const struct upstream_want *want)
{
	char key[UPSTREAM_KEY];
	size_t len;
	if (!make_key(key, &len, want))
		return NULL;
	struct upstream *up = want->offer == OFFER_H1_ONLY ? NULL : upstream_h2_take(w, want, slice_of(key, len));
	if (up)
		return up;
	up = take_idle(w, want, slice_of(key, len));
	if (!up)
		return NULL;
	up->reused = true;
	metric_add(&w->metrics->upstream_reused, 1);
	return up;
}

/* ---- sessions ---- */

int upstream_keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct upstream *up = SSL_get_app_data(ssl);
	if (!up)
		return 0;
	/* The cache owns the reference now; without memory it has dropped it already. */
	enum cage_status st = lru_put(up->worker->sessions, slice_of(up->key, up->key_len), session);
	(void)st;
	return 1;
}

/* A session is used once: TLS 1.3 tickets are for one connection each, and a new one comes with every connection. */
static void offer_session(struct upstream *up, SSL *ssl)
{
	SSL_SESSION *session = lru_take(up->worker->sessions, slice_of(up->key, up->key_len));
	if (!session)
		return;
	SSL_set_session(ssl, session);
	SSL_SESSION_free(session);
}

static void forget_session(struct upstream *up)
{
	SSL_SESSION_free(lru_take(up->worker->sessions, slice_of(up->key, up->key_len)));
}

/* ---- reaching ---- */

uint64_t reach_step_time(struct reach *r)
{
	uint64_t now = clock_mono_us(); /* not the loop's: what this pass has done counts too */
	uint64_t us = now - r->step_us;
	r->step_us = now;
	return us;
}

static enum reach_outcome outcome_of(const struct upstream_result *result)
{
	if (!result->up)
		return REACH_MISSED;
	return result->up->is_h2 ? REACH_GOT_H2 : REACH_GOT_H1;
}

void reach_finish(struct reach *r, enum reason reason)
{
	struct upstream_result result = r->result;
	upstream_cb cb = r->cb;
	void *arg = r->arg;
	result.reason = r->result.reason = reason;
	if (reason == REASON_NONE) {
		result.up = r->up;
		r->up = NULL;
		histogram_add(&r->worker->metrics->upstream_us, result.us_dns + result.us_connect + result.us_tls);
	}
	upstream_h2_part(r, outcome_of(&result));
	reach_cancel(&r);
	cb(arg, &result);
}

static void run_fail(struct deferred *d)
{
	struct reach *r = (struct reach *)(void *)((char *)d - offsetof(struct reach, fail));
	reach_finish(r, r->result.reason);
}

void reach_fail_later(struct reach *r, enum reason reason)
{
	r->state = REACH_FAILED;
	r->result.reason = reason;
	r->fail.run = run_fail;
	loop_defer(r->worker->loop, &r->fail);
}

/* NULL, or why the server is not who it should be. A resumed session was verified when it began, under the same rule of
 * the same policy; it comes without a chain. */
static const char *verify_fault(struct reach *r, SSL *ssl)
{
	long result = SSL_get_verify_result(ssl);
	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return SSL_session_reused(ssl) ? NULL
				       : tls_chain_fault(SSL_get0_verified_chain(ssl), r->want.target->host.text);
}

static void tls_ready(struct stream *s, void *arg)
{
	struct reach *r = arg;
	SSL *ssl = stream_ssl(s);
	r->result.us_tls = reach_step_time(r);
	stream_set_deadline(s, 0); /* the next owner sets its own */
	r->result.detail = verify_fault(r, ssl);
	if (r->result.detail) {
		forget_session(r->up); /* or the next connection would resume it */
		reach_finish(r, REASON_UPSTREAM_UNVERIFIED);
		return;
	}
	if (SSL_session_reused(ssl))
		metric_add(&r->worker->metrics->upstream_resumed, 1);
	if (!tls_chose_h2(ssl))
		reach_finish(r, REASON_NONE);
	else if (r->want.offer != OFFER_H2)
		reach_finish(r, REASON_UPSTREAM_MALFORMED); /* it was not offered */
	else
		reach_finish(r, upstream_h2_share(r) ? REASON_NONE : REASON_INTERNAL);
}

/* A server that knows HTTP/2 alone says so with an alert; it is asked once more. */
static bool try_h2(struct reach *r, enum cage_status why)
{
	if (why != CAGE_EPROTO || r->want.offer != OFFER_H1 || !r->up->wants_other_alpn)
		return false;
	r->want.offer = OFFER_H2;
	upstream_close(&r->up);
	upstream_h2_join(r);
	return true;
}

static void tls_failed(struct stream *s, enum cage_status why, void *arg)
{
	struct reach *r = arg;
	enum reason reason = REASON_UPSTREAM_UNREACHABLE;
	if (try_h2(r, why))
		return;
	if (why == CAGE_EVERIFY || why == CAGE_EPROTO) {
		reason = REASON_UPSTREAM_UNVERIFIED;
		r->result.detail = why == CAGE_EVERIFY ? verify_fault(r, stream_ssl(s)) : "the TLS handshake failed";
	} else if (why == CAGE_ETIMEOUT) {
		reason = REASON_UPSTREAM_TIMEOUT;
	}
	reach_finish(r, reason);
}

static const struct stream_cb tls_cb = {
	.on_ready = tls_ready, .on_data = idle_nothing, .on_drained = idle_nothing, .on_end = tls_failed};

static void on_info(const SSL *ssl, int where, int value)
{
	struct upstream *up = SSL_get_app_data(ssl);
	if (up && (where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && (value & 0xff) == SSL_AD_NO_APPLICATION_PROTOCOL)
		up->wants_other_alpn = true;
}

static bool start_tls(struct reach *r)
{
	SSL *ssl = tls_client_new(r->want.gen->client_ctx, &r->want.target->host);
	if (!ssl)
		return false;
	if (r->want.offer == OFFER_H2 && !tls_offer_h2(ssl)) {
		SSL_free(ssl);
		return false;
	}
	r->state = REACH_TLS;
	SSL_set_info_callback(ssl, on_info);
	SSL_set_app_data(ssl, r->up);
	offer_session(r->up, ssl);
	stream_start_tls(r->up->stream, ssl, false);
	stream_set_deadline(r->up->stream, LIMIT_HANDSHAKE_MS);
	return true;
}

static struct upstream *upstream_new(struct reach *r, int fd, const struct addr *addr)
{
	struct upstream *up = calloc(1, sizeof(*up));
	if (!up)
		return NULL;
	up->worker = r->worker;
	up->addr = *addr;
	up->gen = generation_ref(r->want.gen);
	up->stream = stream_new(r->worker->loop, fd, &tls_cb, r);
	if (!up->stream) {
		upstream_close(&up);
		return NULL;
	}
	memcpy(up->key, r->key, r->key_len);
	up->key_len = r->key_len;
	if (up->gen->policy->n_secrets > 0)
		stream_cleanse_input(up->stream);
	metric_add(&r->worker->metrics->upstream_new, 1);
	return up;
}

static enum reason dial_failure(enum cage_status st, int err)
{
	if (st == CAGE_ETIMEOUT)
		return REASON_UPSTREAM_TIMEOUT;
	bool our_lack = err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
	return our_lack ? REASON_LIMIT_CONNECTIONS : REASON_UPSTREAM_UNREACHABLE;
}

static void on_dialled(void *arg, enum cage_status st, int fd, const struct addr *used)
{
	struct reach *r = arg;
	r->dial = NULL;
	r->result.us_connect = reach_step_time(r);
	if (st != CAGE_OK) {
		reach_finish(r, dial_failure(st, errno));
		return;
	}
	r->result.addr = *used;
	r->up = upstream_new(r, fd, used);
	if (!r->up || (r->want.tls && !start_tls(r)))
		reach_finish(r, REASON_INTERNAL);
	else if (!r->want.tls)
		reach_finish(r, REASON_NONE);
}

static struct vet vet_for(const struct reach *r)
{
	const struct policy_rule *rule = r->want.rule;
	return (struct vet){.ranges = rule ? rule->addresses : NULL,
			    .n_ranges = rule ? rule->n_addresses : 0,
			    .self = r->worker->config->self,
			    .n_self = r->worker->config->n_self};
}

/* Addresses of the pool stand for names inside the sandbox; nobody is there. */
static bool is_of_pool(const struct reach *r, const struct addr *a)
{
	const struct policy_dns *dns = &r->want.gen->policy->dns;
	return dns->mode == DNS_SYNTHETIC && addr_range_contains(&dns->pool, a);
}

/* What may be dialled of these; none is left when one of them is of the pool. */
static size_t vet_found(const struct reach *r, struct addr *addrs, size_t n, enum reason *why)
{
	struct vet vet = vet_for(r);
	for (size_t i = 0; i < n; i++) {
		if (is_of_pool(r, &addrs[i])) {
			*why = REASON_ADDRESS_PRIVATE;
			return 0;
		}
	}
	return vet_addresses(&vet, r->want.target->port, addrs, n, why);
}

/* false: no memory */
static bool start_dial(struct reach *r, const struct addr *addrs, size_t n, uint16_t port)
{
	r->state = REACH_DIAL;
	r->dial = dial_start(r->worker->loop, addrs, n, port, on_dialled, r);
	return r->dial != NULL;
}

static enum reason resolve_failure(enum cage_status st)
{
	if (st == CAGE_ETIMEOUT)
		return REASON_UPSTREAM_TIMEOUT;
	return st == CAGE_ELIMIT ? REASON_LIMIT_CONNECTIONS : REASON_NAME_UNRESOLVED;
}

static void on_resolved(void *arg, enum cage_status st, struct addr *addrs, size_t n)
{
	struct reach *r = arg;
	enum reason why = REASON_NONE;
	r->resolve = NULL;
	r->result.us_dns = reach_step_time(r);
	if (st != CAGE_OK) {
		if (st == CAGE_ETIMEOUT)
			r->result.detail = "The name could not be resolved in time.";
		reach_finish(r, resolve_failure(st));
		return;
	}
	n = vet_found(r, addrs, n, &why);
	if (n == 0)
		reach_finish(r, why);
	else if (!start_dial(r, addrs, n, r->want.target->port))
		reach_finish(r, REASON_INTERNAL);
}

/* Addresses that need no resolver. */
static void reach_addresses(struct reach *r, struct addr *addrs, size_t n)
{
	enum reason why = REASON_NONE;
	n = vet_found(r, addrs, n, &why);
	if (n == 0)
		reach_fail_later(r, why);
	else if (!start_dial(r, addrs, n, r->want.target->port))
		reach_fail_later(r, REASON_INTERNAL);
}

static void reach_pin(struct reach *r, const struct policy_pin *pin)
{
	uint16_t port = pin->port ? pin->port : r->want.target->port;
	enum reason why = REASON_NONE;
	struct vet vet = vet_for(r);
	if (is_of_pool(r, &pin->addr))
		reach_fail_later(r, REASON_ADDRESS_PRIVATE);
	else if (vet_pin(&vet, port, &pin->addr, &why) == 0)
		reach_fail_later(r, why);
	else if (!start_dial(r, &pin->addr, 1, port))
		reach_fail_later(r, REASON_INTERNAL);
}

/* May the name be resolved here? With synthetic addresses nobody else does. */
static bool may_resolve(const struct reach *r, struct slice name)
{
	const struct policy *p = r->want.gen->policy;
	if (!p->bound)
		return true;
	return p->dns.mode == DNS_SYNTHETIC && bindings_has_given(r->worker->bindings, name);
}

/* What cage-dns has answered is what the client knows: nothing else is dialled while it lives. */
static void reach_name(struct reach *r, struct slice name)
{
	bool is_synthetic = r->want.gen->policy->dns.mode == DNS_SYNTHETIC;
	struct addr addrs[LIMIT_ANSWERS];
	size_t n = is_synthetic ? 0 : bindings_addresses(r->worker->bindings, name, addrs);
	if (n > 0) {
		reach_addresses(r, addrs, n);
		return;
	}
	if (!may_resolve(r, name)) {
		reach_fail_later(r, REASON_NAME_UNBOUND);
		return;
	}
	r->resolve = resolver_query(r->want.gen->resolver, name, on_resolved, r);
	if (!r->resolve)
		reach_fail_later(r, REASON_INTERNAL);
}

void reach_start(struct reach *r)
{
	const struct host *host = &r->want.target->host;
	const struct policy_pin *pin = policy_pin_for(r->want.gen->policy, host);
	r->state = REACH_RESOLVE;
	struct addr literal = host->addr;
	if (pin)
		reach_pin(r, pin);
	else if (host->kind == HOST_ADDRESS)
		reach_addresses(r, &literal, 1);
	else
		reach_name(r, host->text);
}

struct reach *upstream_reach(struct worker *w, const struct upstream_want *want, upstream_cb cb, void *arg)
{
	struct reach *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	if (!make_key(r->key, &r->key_len, want)) {
		free(r);
		return NULL;
	}
	r->worker = w;
	r->want = *want;
	r->cb = cb;
	r->arg = arg;
	r->step_us = clock_mono_us();
	generation_ref(want->gen);
	if (want->tls && want->offer == OFFER_H2)
		upstream_h2_join(r);
	else
		reach_start(r);
	return r;
}

void reach_cancel(struct reach **rp)
{
	struct reach *r = *rp;
	if (!r)
		return;
	*rp = NULL;
	upstream_h2_part(r, REACH_GIVEN_UP);
	resolve_cancel(&r->resolve);
	dial_cancel(&r->dial);
	loop_undefer(r->worker->loop, &r->fail);
	upstream_close(&r->up);
	generation_unref(&r->want.gen);
	free(r);
}

enum reason upstream_check_name(const struct host *host, const struct policy_rule *rule)
{
	bool has_addresses = rule && rule->n_addresses > 0;
	if (host->kind == HOST_NAME)
		return !has_addresses && addr_spelled_in_name(host->text) ? REASON_NAME_SUSPICIOUS : REASON_NONE;
	if (addr_classify(&host->addr) == ADDR_PUBLIC || has_addresses)
		return REASON_NONE; /* with addresses, vetting before the dial decides */
	return REASON_ADDRESS_PRIVATE;
}
