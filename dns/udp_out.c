/* From answers to trains to one call. */
#include "dns/udp_out.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/base/limits.h"

/* The address that was asked, and the length of one packet of a train. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
};

struct train {
	size_t first; /* of its answers */
	size_t n;
	size_t start; /* of its parts */
};

struct dns_outbox {
	int fd; /* of all that is gathered */
	size_t n;
	bool is_cut_by_us; /* trains were refused: there are none */
	struct dns_client to[LIMIT_DNS_BATCH];
	size_t len[LIMIT_DNS_BATCH];
	char data[LIMIT_DNS_BATCH][LIMIT_DNS_UDP];
	/* Made when they leave. */
	size_t n_trains;
	struct train trains[LIMIT_DNS_BATCH];
	size_t train_of[LIMIT_DNS_BATCH];
	struct mmsghdr headers[LIMIT_DNS_BATCH]; /* of each train */
	union control control[LIMIT_DNS_BATCH];
	struct iovec parts[LIMIT_DNS_BATCH];
};

struct dns_outbox *dns_outbox_new(void)
{
	return calloc(1, sizeof(struct dns_outbox));
}

void dns_outbox_free(struct dns_outbox **out)
{
	free(*out);
	*out = NULL;
}

/* ---- trains */

static bool is_same_address(const union dns_sockaddr *a, const union dns_sockaddr *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
	       memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0;
}

static bool is_same_client(const struct dns_client *a, const struct dns_client *b)
{
	return is_same_address(&a->udp.from, &b->udp.from) && a->udp.has_asked == b->udp.has_asked &&
	       a->udp.interface == b->udp.interface && memcmp(&a->udp.asked, &b->udp.asked, sizeof(a->udp.asked)) == 0;
}

static bool takes(const struct dns_outbox *out, const struct train *t, size_t i)
{
	return !out->is_cut_by_us && out->len[t->first] == out->len[i] && (t->n + 1) * out->len[i] <= LIMIT_DNS_TRAIN &&
	       is_same_client(&out->to[t->first], &out->to[i]);
}

/* The train that answer i goes with: one that takes it, or a new one. */
static size_t find_train(struct dns_outbox *out, size_t i)
{
	for (size_t t = 0; t < out->n_trains; t++)
		if (takes(out, &out->trains[t], i))
			return t;
	out->trains[out->n_trains] = (struct train){.first = i};
	return out->n_trains++;
}

static void put_control(struct msghdr *h, union control *room, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *m = (struct cmsghdr *)(void *)(room->bytes + h->msg_controllen);
	h->msg_control = room;
	h->msg_controllen += CMSG_SPACE(len);
	m->cmsg_level = level;
	m->cmsg_type = type;
	m->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(m), data, len);
}

/* The answer leaves from the address that was asked. */
static void put_source(struct msghdr *h, union control *room, const struct dns_client *c)
{
	if (c->udp.from.any.sa_family == AF_INET) {
		struct in_pktinfo v4 = {0};
		memcpy(&v4.ipi_spec_dst, &c->udp.asked, sizeof(v4.ipi_spec_dst));
		put_control(h, room, IPPROTO_IP, IP_PKTINFO, &v4, sizeof(v4));
	} else {
		struct in6_pktinfo v6 = {.ipi6_addr = c->udp.asked, .ipi6_ifindex = c->udp.interface};
		put_control(h, room, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof(v6));
	}
}

static void make_header(struct dns_outbox *out, size_t i)
{
	const struct train *t = &out->trains[i];
	struct dns_client *c = &out->to[t->first];
	struct msghdr *h = &out->headers[i].msg_hdr;
	const uint16_t len = (uint16_t)out->len[t->first];
	*h = (struct msghdr){.msg_name = &c->udp.from,
			     .msg_namelen = c->udp.from.any.sa_family == AF_INET ? sizeof(c->udp.from.v4)
										 : sizeof(c->udp.from.v6),
			     .msg_iov = out->parts + t->start,
			     .msg_iovlen = t->n};
	if (c->udp.has_asked)
		put_source(h, &out->control[i], c);
	if (t->n > 1)
		put_control(h, &out->control[i], IPPROTO_UDP, UDP_SEGMENT, &len, sizeof(len));
}

static void make_trains(struct dns_outbox *out)
{
	size_t start = 0;
	out->n_trains = 0;
	for (size_t i = 0; i < out->n; i++) {
		out->train_of[i] = find_train(out, i);
		out->trains[out->train_of[i]].n++;
	}
	for (size_t t = 0; t < out->n_trains; t++) {
		out->trains[t].start = start;
		start += out->trains[t].n;
		make_header(out, t);
		out->trains[t].n = 0;
	}
	for (size_t i = 0; i < out->n; i++) {
		struct train *t = &out->trains[out->train_of[i]];
		out->parts[t->start + t->n++] = (struct iovec){.iov_base = out->data[i], .iov_len = out->len[i]};
	}
}

/* ---- sending */

static void count(struct dns_server_stats *stats, bool is_sent, size_t n)
{
	*(is_sent ? &stats->udp_answers : &stats->udp_unsent) += n;
}

/* A train that was refused as such, packet by packet. */
static void send_alone(struct dns_outbox *out, size_t i, struct dns_server_stats *stats)
{
	struct msghdr h = out->headers[i].msg_hdr;
	const size_t n = h.msg_iovlen;
	if (n > 1)
		h.msg_controllen -= CMSG_SPACE(sizeof(uint16_t));
	if (h.msg_controllen == 0)
		h.msg_control = NULL;
	h.msg_iovlen = 1;
	for (size_t k = 0; k < n; k++, h.msg_iov++)
		count(stats, sendmsg(out->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0, 1);
}

/* As a kernel or a socket does for which there are none; else it is that client's fault. */
static bool refuses_trains(int error)
{
	return error == EINVAL || error == EIO || error == EOPNOTSUPP || error == ENOPROTOOPT;
}

/* What is not taken now is lost, as packets are: the client asks again. */
void dns_outbox_flush(struct dns_outbox *out, struct dns_server_stats *stats)
{
	make_trains(out);
	size_t at = 0;
	while (at < out->n_trains) {
		int sent = sendmmsg(out->fd, out->headers + at, (unsigned)(out->n_trains - at),
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		bool is_full = sent < 0 && (errno == EAGAIN || errno == ENOBUFS);
		size_t n = sent > 0 ? (size_t)sent : is_full ? out->n_trains - at : 0;
		for (size_t i = at; i < at + n; i++)
			count(stats, sent > 0, out->trains[i].n);
		if (n == 0) {
			out->is_cut_by_us = out->is_cut_by_us || (out->trains[at].n > 1 && refuses_trains(errno));
			send_alone(out, at, stats);
			n = 1;
		}
		at += n;
	}
	out->n = 0;
}

void dns_outbox_put(struct dns_outbox *out, const struct dns_client *c, struct slice answer,
		    struct dns_server_stats *stats)
{
	if (answer.len > LIMIT_DNS_UDP) {
		stats->udp_unsent++;
		return;
	}
	if (out->n == LIMIT_DNS_BATCH || (out->n > 0 && out->fd != c->udp.fd))
		dns_outbox_flush(out, stats);
	size_t i = out->n++;
	out->fd = c->udp.fd;
	out->to[i] = *c;
	out->len[i] = answer.len;
	memcpy(out->data[i], answer.ptr, answer.len);
}
