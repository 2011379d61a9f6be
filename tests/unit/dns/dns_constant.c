/* The server alone, with answers that depend on the name only, for tests and for measuring what it costs.
 *
 * usage: helper_dns_constant ADDRESS PORT
 *
 * Prints "udp PORT" and "tcp PORT", then a line for each connection that is refused or cut. A name that begins with
 *	hold	waits until some query begins with "release", and is answered first
 *	drop	has no answer
 *	big	is answered with as much as fits
 * and everything else with 192.0.2.1. SIGUSR1 releases as well. SIGUSR2 leaves no room for queries, until the next one; when
 * there was none for the third time, "rested" is printed. SIGTERM drains, prints "drained" and the counters, and ends. */
#include <signal.h>
#include <stdio.h>

#include "core/net/listener.h"
#include "dns/server.h"
#include "dns/sockets.h"
#include "dns/wire.h"

#define HELD_MAX 1024

struct held {
	struct dns_client client;
	char packet[LIMIT_DNS_QUERY];
	size_t len;
};

static struct held held[HELD_MAX];
static size_t n_held;
static bool is_clogged;
static unsigned n_refused; /* looks at the room since it is clogged */
static struct loop *loop;
static struct dns_server *server;

static void answer(const struct dns_client *c, const struct dns_query *q, enum dns_parse parse)
{
	static char buf[LIMIT_DNS_TCP];
	struct dns_writer w;
	bool is_big = slice_starts(dns_name_text(&q->q.name), SLICE("big"));
	dns_write_begin(&w, buf, c->is_udp ? q->udp_size : sizeof(buf), q);
	dns_write_rcode(&w, dns_parse_rcode(parse));
	for (size_t i = 0; parse == DNS_PARSE_OK && i < (is_big ? 2000 : 1); i++)
		dns_write_a(&w, &q->q.name, 60, (const uint8_t *)"\300\000\002\001");
	dns_reply(c, dns_write_end(&w));
}

static void hold(const struct dns_client *c, struct slice packet)
{
	if (n_held == HELD_MAX) {
		dns_drop(c);
		return;
	}
	struct held *h = &held[n_held++];
	h->client = *c;
	h->len = packet.len;
	memcpy(h->packet, packet.ptr, packet.len);
}

static void release(void)
{
	struct dns_query q;
	for (size_t i = 0; i < n_held; i++)
		answer(&held[i].client, &q, dns_query_parse(slice_of(held[i].packet, held[i].len), &q));
	n_held = 0;
}

static void on_query(void *arg, const struct dns_client *c, struct slice packet)
{
	(void)arg;
	struct dns_query q;
	enum dns_parse parse = dns_query_parse(packet, &q);
	struct slice name = dns_name_text(&q.q.name);
	if (parse == DNS_PARSE_DROP || slice_starts(name, SLICE("drop"))) {
		dns_drop(c);
		return;
	}
	if (slice_starts(name, SLICE("hold"))) {
		hold(c, packet);
		return;
	}
	if (slice_starts(name, SLICE("release")))
		release();
	answer(c, &q, parse);
}

static bool has_room(void *arg)
{
	(void)arg;
	if (is_clogged && ++n_refused == 3) {
		printf("rested\n");
		fflush(stdout);
	}
	return !is_clogged;
}

static void on_refused(void *arg, enum reason why, const struct addr *from)
{
	(void)arg;
	char text[ADDR_TEXT];
	printf("refused %.*s %.*s\n", SLICE_FMT(reason_code(why)), SLICE_FMT(addr_format(from, text)));
	fflush(stdout);
}

static void on_drained(void *arg)
{
	(void)arg;
	const struct dns_server_stats *s = dns_server_stats(server);
	printf("drained\nudp queries %lu answers %lu limited %lu ignored %lu unsent %lu\n",
	       (unsigned long)s->udp_queries, (unsigned long)s->udp_answers, (unsigned long)s->udp_limited,
	       (unsigned long)s->udp_ignored, (unsigned long)s->udp_unsent);
	printf("tcp queries %lu answers %lu taken %lu refused %lu cut %lu\n", (unsigned long)s->tcp_queries,
	       (unsigned long)s->tcp_answers, (unsigned long)s->tcp_taken, (unsigned long)s->tcp_refused,
	       (unsigned long)s->tcp_cut);
	fflush(stdout);
	loop_stop(loop);
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	dns_server_drain(server, on_drained, NULL);
	printf("draining %zu\n", dns_server_outstanding(server));
	fflush(stdout);
}

static void on_usr1(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	release();
}

static void on_usr2(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	is_clogged = !is_clogged;
	n_refused = 0;
	printf(is_clogged ? "clogged\n" : "clear\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct dns_server_cb cb = {on_query, has_room, on_refused};
	struct listen_spec spec = {.kind = LISTEN_TCP};
	struct dns_sockets sockets = {0};
	struct addr_port at;
	uint64_t port;
	if (argc != 3 || !addr_parse(slice_str(argv[1]), &spec.at.addr) ||
	    !slice_to_u64(slice_str(argv[2]), UINT16_MAX, &port))
		return 2;
	spec.at.port = (uint16_t)port;
	loop = loop_new();
	if (!loop || !dns_sockets_open(&sockets, &spec, &at))
		return 1;
	server = dns_server_new(loop, sockets.udp, 1, sockets.tcp, 1, &cb, NULL);
	struct event *term = evsignal_new(loop_base(loop), SIGTERM, on_term, NULL);
	struct event *usr1 = evsignal_new(loop_base(loop), SIGUSR1, on_usr1, NULL);
	struct event *usr2 = evsignal_new(loop_base(loop), SIGUSR2, on_usr2, NULL);
	if (!server || !term || !usr1 || !usr2 || event_add(term, NULL) != 0 || event_add(usr1, NULL) != 0 ||
	    event_add(usr2, NULL) != 0)
		return 1;
	printf("udp %u\ntcp %u\n", at.port, at.port);
	fflush(stdout);
	loop_run(loop);
	event_free(term);
	event_free(usr1);
	event_free(usr2);
	dns_server_free(&server);
	loop_once(loop); /* nothing is left to wait for; what was closed is freed */
	loop_free(&loop);
	return 0;
}
