/* UDP: packets come and go in batches, one system call for many. What is on the way of a query that is answered at once
 * takes no memory but the batches themselves.
 *
 *	WAITING -> BUSY -> WAITING     there was more than one turn's work, until there is not
 *	   |        |
 *	   +-> RESTING -> any          the log is half full; what comes meanwhile is the kernel's to keep
 *
 * Only a socket that is WAITING is known to epoll, which costs something for each packet that is sent, too. */
#include "dns/server_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/net/listener.h"
#include "dns/rrl.h"
#include "dns/udp_out.h"
#include "dns/wire.h"

/* The address that was asked. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

struct inbox {
	struct mmsghdr headers[LIMIT_DNS_BATCH];
	struct iovec parts[LIMIT_DNS_BATCH];
	union dns_sockaddr from[LIMIT_DNS_BATCH];
	union control control[LIMIT_DNS_BATCH];
	char data[LIMIT_DNS_BATCH][LIMIT_DNS_QUERY];
};

enum udp_state { UDP_STOPPED, UDP_WAITING, UDP_BUSY, UDP_RESTING };

struct udp_socket {
	struct dns_udp *udp;
	int fd;
	bool is_any; /* bound to no address, so that packets say which one was asked */
	enum udp_state state;
	struct event *readable; /* WAITING */
	struct event *turn;     /* BUSY, RESTING */
};

struct dns_udp {
	struct dns_server *server;
	struct udp_socket *sockets;
	size_t n_sockets;
	struct dns_rrl rrl;
	struct inbox in;
	struct dns_outbox *out;
};

void dns_udp_flush(struct dns_udp *u)
{
	dns_outbox_flush(u->out, &u->server->stats);
}

void dns_udp_reply(struct dns_udp *u, const struct dns_client *c, struct slice answer)
{
	dns_outbox_put(u->out, c, answer, &u->server->stats);
}

/* ---- queries */

/* Of a mapped address what is in it; false when there is nobody to answer. */
static bool read_sender(const union dns_sockaddr *from, struct addr *out)
{
	uint16_t port;
	if (!addr_from_sockaddr(&from->any, out, &port) || port == 0)
		return false;
	if (from->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&from->v6.sin6_addr)) {
		*out = (struct addr){.family = ADDR_V4};
		memcpy(out->bytes, from->v6.sin6_addr.s6_addr + 12, 4);
	}
	return true;
}

static void read_asked(struct msghdr *h, struct dns_client *c)
{
	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		if (m->cmsg_level == IPPROTO_IP && m->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo v4;
			memcpy(&v4, CMSG_DATA(m), sizeof(v4));
			memcpy(&c->udp.asked, &v4.ipi_spec_dst, sizeof(v4.ipi_spec_dst));
			c->udp.has_asked = true;
		} else if (m->cmsg_level == IPPROTO_IPV6 && m->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo v6;
			memcpy(&v6, CMSG_DATA(m), sizeof(v6));
			c->udp.asked = v6.ipi6_addr;
			c->udp.interface = IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr) ? v6.ipi6_ifindex : 0;
			c->udp.has_asked = true;
		}
	}
}

/* The shortest answer that sends an honest client to TCP. */
static void answer_truncated(struct dns_udp *u, const struct dns_client *c, struct slice packet)
{
	struct dns_query query;
	struct dns_writer w;
	char buf[LIMIT_DNS_UDP];
	if (dns_query_parse(packet, &query) != DNS_PARSE_OK)
		return;
	dns_write_begin(&w, buf, query.udp_size, &query);
	w.is_truncated = true;
	dns_udp_reply(u, c, dns_write_end(&w));
	loop_defer(u->server->loop, &u->server->work);
}

/* Is it to be handed out? */
static bool is_welcome(struct dns_udp *u, const struct dns_client *c, const struct addr *from, struct slice packet)
{
	enum dns_rrl_verdict verdict = dns_rrl_judge(&u->rrl, from, loop_now_us(u->server->loop));
	if (verdict == DNS_RRL_ANSWER)
		return true;
	u->server->stats.udp_limited++;
	if (verdict == DNS_RRL_TRUNCATE)
		answer_truncated(u, c, packet);
	return false;
}

static void take_packet(struct udp_socket *s, size_t i)
{
	struct dns_udp *u = s->udp;
	struct mmsghdr *m = &u->in.headers[i];
	struct slice packet = slice_of(u->in.data[i], m->msg_len);
	struct dns_client c = {.is_udp = true, .server = u->server, .udp = {.fd = s->fd, .from = u->in.from[i]}};
	struct addr from;
	if (packet.len == 0 || !read_sender(&u->in.from[i], &from)) {
		u->server->stats.udp_ignored++;
		return;
	}
	c.is_verified = addr_is_loopback(&from);
	if (s->is_any)
		read_asked(&m->msg_hdr, &c);
	if (m->msg_hdr.msg_flags & MSG_TRUNC)
		packet = slice_head(packet, DNS_HEADER);
	u->server->stats.udp_queries++;
	if (c.is_verified || is_welcome(u, &c, &from, packet))
		dns_server_ask(u->server, &c, packet);
}

/* Room for the next packet. */
static void clear_header(struct udp_socket *s, size_t i)
{
	struct msghdr *h = &s->udp->in.headers[i].msg_hdr;
	h->msg_namelen = sizeof(s->udp->in.from[i]);
	h->msg_controllen = s->is_any ? sizeof(s->udp->in.control[i]) : 0;
}

/* As many as there were. */
static size_t read_batch(struct udp_socket *s)
{
	struct dns_udp *u = s->udp;
	for (size_t i = 0; i < LIMIT_DNS_BATCH; i++)
		clear_header(s, i);
	int n = recvmmsg(s->fd, u->in.headers, LIMIT_DNS_BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take_packet(s, (size_t)i);
	return n > 0 ? (size_t)n : 0;
}

/* The only place that changes the state. A socket that nobody would read any more is a worker that is of no use. */
static void socket_enter(struct udp_socket *s, enum udp_state next)
{
	const struct timeval soon = loop_ms(next == UDP_RESTING ? LIMIT_DNS_REST_MS : 0);
	if (next != UDP_WAITING && s->state == UDP_WAITING)
		event_del(s->readable);
	switch (next) {
	case UDP_STOPPED:
		evtimer_del(s->turn);
		break;
	case UDP_WAITING:
		if (s->state != UDP_WAITING && event_add(s->readable, NULL) != 0)
			abort();
		break;
	case UDP_BUSY:
	case UDP_RESTING:
		if (evtimer_add(s->turn, &soon) != 0)
			abort();
		break;
	}
	s->state = next;
}

/* Some batches, before others get their turn. */
static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct udp_socket *s = arg;
	size_t n = LIMIT_DNS_BATCH, batches = 0;
	bool has_room = true;
	while (n == LIMIT_DNS_BATCH && batches++ < LIMIT_DNS_BATCHES && has_room) {
		has_room = dns_server_has_room(s->udp->server);
		n = has_room ? read_batch(s) : n;
	}
	socket_enter(s, !has_room ? UDP_RESTING : n == LIMIT_DNS_BATCH ? UDP_BUSY : UDP_WAITING);
}

/* ---- sockets */

/* On IPv6 this covers IPv4 as well, with mapped addresses. */
static bool ask_for_asked(int fd, int family)
{
	int one = 1;
	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) == 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)) == 0;
}

static bool is_any_address(const union dns_sockaddr *at)
{
	if (at->any.sa_family == AF_INET)
		return at->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr);
}

/* An answer that does not fit its path is lost, never cut into pieces, of which others could forge one. */
static void refuse_fragments(int fd, int family)
{
	const int v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE;
	if (family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	else
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
}

static bool socket_init(struct udp_socket *s, struct dns_udp *u, int fd)
{
	union dns_sockaddr at = {.v6 = {0}};
	socklen_t len = sizeof(at);
	s->udp = u;
	s->fd = fd;
	if (getsockname(fd, &at.any, &len) != 0)
		return false;
	s->is_any = is_any_address(&at);
	if (s->is_any && !ask_for_asked(fd, at.any.sa_family))
		return false;
	refuse_fragments(fd, at.any.sa_family);
	s->readable = event_new(loop_base(u->server->loop), fd, EV_READ | EV_PERSIST, on_turn, s);
	s->turn = evtimer_new(loop_base(u->server->loop), on_turn, s);
	if (!s->readable || !s->turn)
		return false;
	socket_enter(s, UDP_WAITING);
	return true;
}

static void socket_free(struct udp_socket *s)
{
	if (s->readable)
		event_free(s->readable);
	if (s->turn)
		event_free(s->turn);
}

static void inbox_init(struct inbox *in)
{
	for (size_t i = 0; i < LIMIT_DNS_BATCH; i++) {
		in->parts[i] = (struct iovec){.iov_base = in->data[i], .iov_len = sizeof(in->data[i])};
		in->headers[i].msg_hdr = (struct msghdr){.msg_name = &in->from[i],
							 .msg_iov = &in->parts[i],
							 .msg_iovlen = 1,
							 .msg_control = &in->control[i]};
	}
}

struct dns_udp *dns_udp_new(struct dns_server *server, const int *fds, size_t n)
{
	struct dns_udp *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->server = server;
	dns_rrl_init(&u->rrl);
	inbox_init(&u->in);
	u->sockets = calloc(n ? n : 1, sizeof(*u->sockets));
	u->n_sockets = u->sockets ? n : 0;
	u->out = dns_outbox_new();
	bool good = u->sockets && u->out;
	for (size_t i = 0; i < u->n_sockets; i++)
		good = good && socket_init(&u->sockets[i], u, fds[i]);
	if (!good)
		dns_udp_free(&u);
	return u;
}

void dns_udp_stop(struct dns_udp *u)
{
	for (size_t i = 0; i < u->n_sockets; i++)
		socket_enter(&u->sockets[i], UDP_STOPPED);
}

void dns_udp_free(struct dns_udp **up)
{
	struct dns_udp *u = *up;
	if (!u)
		return;
	*up = NULL;
	for (size_t i = 0; i < u->n_sockets; i++)
		socket_free(&u->sockets[i]);
	dns_outbox_free(&u->out);
	free(u->sockets);
	free(u);
}

int dns_udp_open(const struct addr *at, uint16_t port, bool is_by_link)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(at, port, &ss);
	int room = (int)LIMIT_DNS_UDP_BUFFER, one = 1;
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)); /* as much as may be had */
	if (ss.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if ((!is_by_link || listen_by_link(fd, at)) && bind(fd, (struct sockaddr *)&ss, len) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}
