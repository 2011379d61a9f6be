/* The worker process: serves, follows the master's word, and drains. */
#include "dns/worker.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/control.h"
#include "core/proc/policy_store.h"
#include "dns/query.h"

/* What the master has sent is lost, as when we are out of memory: a successor gets it anew. */
static _Noreturn void give_up(const char *what)
{
	say("a worker can't %s and restarts", what);
	_exit(1);
}

/* ---- a policy and what is built from it ---- */

static bool asks_over_tls(const struct worker_config *config, const struct policy *p)
{
	return policy_count_tls(config->upstream, config->n_upstream) + policy_count_tls(p->resolvers, p->n_resolvers) >
	       0;
}

static struct dns_server_spec spec_of(const struct policy_resolver *r)
{
	return (struct dns_server_spec){.addr = r->addr, .port = r->port, .tls_name = r->name};
}

/* Those of the command line, then those of the policy; none: the system's. */
static struct dns_upstream *make_upstream(struct worker *w, const struct policy *p)
{
	const struct worker_config *config = w->config;
	struct trust trust = {.system = p->trust.system, .pems = p->trust.pems, .n_pems = p->trust.n_pems};
	struct dns_server_spec *servers = calloc(config->n_upstream + p->n_resolvers + 1, sizeof(*servers));
	size_t n = 0;
	if (!servers)
		return NULL;
	for (size_t i = 0; i < config->n_upstream; i++)
		servers[n++] = spec_of(&config->upstream[i]);
	for (size_t i = 0; i < p->n_resolvers; i++)
		servers[n++] = spec_of(&p->resolvers[i]);
	if (trust.system && asks_over_tls(config, p))
		trust_load_system(); /* not before: they take memory that few policies need */
	struct dns_upstream *u = dns_upstream_new(w->loop, servers, n, &trust);
	free(servers);
	return u;
}

static bool use_policy(struct worker *w, const struct seat *seat)
{
	const struct policy *p = seat->policy;
	w->policy = p;
	w->slot = seat->slot;
	audit_policy_init(&w->logged, p->name, slice_str(p->sha), p->gen);
	w->tunnel = dns_tunnel_new(p, w->config->ledger, w->config->fingerprint_key);
	w->upstream = w->tunnel ? make_upstream(w, p) : NULL;
	dns_cache_set_generation(w->cache, p->gen);
	return w->upstream != NULL;
}

static void forget_policy(struct worker *w)
{
	dns_upstream_free(&w->upstream);
	dns_tunnel_free(&w->tunnel);
	policy_store_unmap(w->slot);
}

static void tell_ready(const struct worker *w)
{
	struct control ready = {.type = CONTROL_READY, .gen = w->policy->gen};
	if (control_send(w->config->control, &ready, -1) != CAGE_OK)
		exit(1);
}

/* Who waits under the old policy is asked for anew under the new one. */
static void adopt_policy(struct worker *w, const struct control *msg, int fd)
{
	enum worker_state before = w->state;
	w->state = WORKER_CHANGING;
	forget_policy(w);
	w->state = before;
	if (policy_store_map(msg->seat.slot, fd, msg->seat.size) != CAGE_OK || !use_policy(w, &msg->seat))
		give_up("take the new policy");
	query_ask_again(w);
	tell_ready(w);
}

/* ---- draining ---- */

static void on_drained(void *arg)
{
	struct worker *w = arg;
	loop_stop(w->loop);
}

static void drain(struct worker *w)
{
	if (w->state == WORKER_DRAINING)
		return;
	w->state = WORKER_DRAINING;
	w->drain_deadline_us = clock_mono_us() + (uint64_t)LIMIT_DRAIN_MS * 1000u;
	dns_server_drain(w->server, on_drained, w);
	for (size_t i = 0; i < w->config->sockets->n_tcp; i++)
		close(w->config->sockets
			      ->tcp[i]); /* clients are refused at once; those of UDP carry the last answers */
}

/* Who still waits is told that it failed; who does not take even that is left. */
static void end_drain(struct worker *w)
{
	if (w->upstream)
		dns_upstream_free(&w->upstream);
	else
		loop_stop(w->loop);
}

/* ---- events ---- */

static void on_control(evutil_socket_t sock, short what, void *arg)
{
	(void)what;
	struct worker *w = arg;
	struct control msg;
	int fd;
	if (!control_from_master(sock, &msg, &fd))
		return;
	if (msg.type == CONTROL_SEAT)
		adopt_policy(w, &msg, fd);
	else if (msg.type == CONTROL_DRAIN)
		drain(w);
	if (fd >= 0)
		close(fd);
}

static void count_server(struct worker *w)
{
	const struct dns_server_stats *now = dns_server_stats(w->server);
	dns_metrics_count(w->metrics, now, &w->counted);
	if (now->udp_limited > w->counted.udp_limited)
		query_rate_limited(w);
	w->counted = *now;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct worker *w = arg;
	count_server(w);
	metric_set(&w->metrics->cache_entries, dns_cache_count(w->cache));
	metric_set(&w->metrics->cache_bytes, dns_cache_bytes(w->cache));
	metric_set(&w->metrics->log_lost, audit_ring_lost(w->config->ring));
	metric_set(&w->metrics->log_pending, audit_ring_pending(w->config->ring));
	if (w->state == WORKER_DRAINING && clock_mono_us() > w->drain_deadline_us)
		end_drain(w);
}

/* ---- life ---- */

/* What failed; NULL: nothing. */
static const char *worker_open(struct worker *w)
{
	static const struct dns_server_cb cb = {
		.on_query = query_arrived, .has_room = query_has_room, .on_refused = query_connection_refused};
	const struct worker_config *config = w->config;
	const struct dns_sockets *s = config->sockets;
	struct timeval second = {.tv_sec = 1};
	arena_init(&w->arena, KIB(8));
	w->again_last = &w->again;
	w->loop = loop_new();
	w->cache = dns_cache_new(LIMIT_DNS_CACHE, LIMIT_DNS_CACHE_BYTES);
	w->waiting = dns_waiting_new(LIMIT_DNS_WAITING, LIMIT_DNS_WAITING_CLIENTS);
	if (!w->loop || !w->cache || !w->waiting)
		return "no memory";
	if (!use_policy(w, config->seat))
		return w->tunnel ? "no resolver can be asked" : "no memory for the inspectors";
	if (config->bindings >= 0 &&
	    !(w->bindings = dns_bindings_new(w->loop, config->bindings, config->bindings_seed)))
		return "no memory for the bindings";
	w->control = event_new(loop_base(w->loop), config->control, EV_READ | EV_PERSIST, on_control, w);
	w->tick = event_new(loop_base(w->loop), -1, EV_PERSIST, on_tick, w);
	w->server = dns_server_new(w->loop, s->udp, s->n_udp, s->tcp, s->n_tcp, &cb, w);
	if (!w->server)
		return "its sockets can't be served";
	bool has_events = w->control && w->tick && event_add(w->control, NULL) == 0 && event_add(w->tick, &second) == 0;
	return has_events ? NULL : "its events can't be had";
}

static void worker_close(struct worker *w)
{
	dns_upstream_free(&w->upstream);
	dns_server_free(&w->server);
	dns_tunnel_free(&w->tunnel);
	dns_waiting_free(&w->waiting);
	dns_bindings_free(&w->bindings);
	dns_cache_free(&w->cache);
	event_free(w->control);
	event_free(w->tick);
	arena_free(&w->arena);
	loop_free(&w->loop);
}

_Noreturn void worker_run(const struct worker_config *config)
{
	static struct worker w; /* static: it is large */
	w.config = config;
	w.metrics = config->metrics;
	w.next_id = config->first_id;
	audit_ring_adopt(config->ring);
	const char *failed = worker_open(&w);
	if (failed) {
		say("a worker can't start: %s", failed);
		exit(1);
	}
	tell_ready(&w);
	loop_run(w.loop);
	count_server(&w);
	worker_close(&w);
	exit(0);
}
