/* What UDP and TCP have in common: the count of what is outstanding, and the drain. */
#include "dns/server_internal.h"

#include <stdlib.h>

static struct dns_server *of_work(struct deferred *d)
{
	return (struct dns_server *)(void *)((char *)d - offsetof(struct dns_server, work));
}

static void on_work(struct deferred *d)
{
	struct dns_server *s = of_work(d);
	dns_udp_flush(s->udp);
	if (s->state != DNS_SERVER_DRAINING || s->outstanding > 0)
		return;
	s->state = DNS_SERVER_DRAINED;
	s->on_drained(s->drained_arg);
}

struct dns_server *dns_server_new(struct loop *loop, const int *udp_fds, size_t n_udp, const int *tcp_fds, size_t n_tcp,
				  const struct dns_server_cb *cb, void *arg)
{
	struct dns_server *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->loop = loop;
	s->cb = cb;
	s->arg = arg;
	s->work.run = on_work;
	s->udp = dns_udp_new(s, udp_fds, n_udp);
	s->tcp = dns_tcp_new(s, tcp_fds, n_tcp);
	if (!s->udp || !s->tcp)
		dns_server_free(&s);
	return s;
}

void dns_server_free(struct dns_server **sp)
{
	struct dns_server *s = *sp;
	if (!s)
		return;
	*sp = NULL;
	loop_undefer(s->loop, &s->work);
	dns_tcp_free(&s->tcp);
	dns_udp_free(&s->udp);
	free(s);
}

void dns_server_ask(struct dns_server *s, const struct dns_client *c, struct slice packet)
{
	s->outstanding++;
	s->cb->on_query(s->arg, c, packet);
}

bool dns_server_has_room(const struct dns_server *s)
{
	return s->cb->has_room(s->arg);
}

/* One query less. */
static void end_query(const struct dns_client *c, struct slice answer)
{
	struct dns_server *s = c->server;
	s->outstanding--;
	if (!c->is_udp)
		dns_tcp_reply(s->tcp, c, answer);
	else if (answer.len > 0)
		dns_udp_reply(s->udp, c, answer);
	if (c->is_udp || s->state == DNS_SERVER_DRAINING)
		loop_defer(s->loop, &s->work);
}

void dns_reply(const struct dns_client *c, struct slice answer)
{
	end_query(c, answer);
}

void dns_drop(const struct dns_client *c)
{
	end_query(c, SLICE_NONE);
}

void dns_server_drain(struct dns_server *s, void (*on_drained)(void *arg), void *arg)
{
	if (s->state != DNS_SERVER_SERVING)
		return;
	s->state = DNS_SERVER_DRAINING;
	s->on_drained = on_drained;
	s->drained_arg = arg;
	dns_udp_stop(s->udp);
	dns_tcp_stop(s->tcp);
	loop_defer(s->loop, &s->work);
}

size_t dns_server_outstanding(const struct dns_server *s)
{
	return s->outstanding;
}

const struct dns_server_stats *dns_server_stats(const struct dns_server *s)
{
	return &s->stats;
}
