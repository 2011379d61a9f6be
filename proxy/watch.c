/* Reads packets and writes lines, so many a second: an agent that scans all ports must not fill the log. What is beyond
 * that is thrown away; it was refused like the rest. */
#include "proxy/watch.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "proxy/worker.h"

enum { PACKET_MAX = 256 }; /* headers with options; the socket cuts the rest */
enum { IPV4_HEADER = 20, IPV6_HEADER = 40, PORTS = 4 };

struct watch {
	struct worker *worker;
	struct event *event;
	double tokens; /* lines that may be written now */
	uint64_t last_us;
};

static uint16_t read_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool take_ports(const unsigned char *p, size_t len, size_t header, unsigned protocol, uint16_t *port)
{
	if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || len < header + PORTS)
		return false;
	*port = read_u16(p + header + 2);
	return true;
}

bool watch_parse(struct slice packet, struct addr *to, uint16_t *port)
{
	const unsigned char *p = (const unsigned char *)packet.ptr;
	*to = (struct addr){.family = ADDR_V4};
	if (packet.len < IPV4_HEADER)
		return false;
	if (p[0] >> 4 == 4) {
		size_t header = 4 * (size_t)(p[0] & 0xf);
		memcpy(to->bytes, p + 16, 4);
		return header >= IPV4_HEADER && take_ports(p, packet.len, header, p[9], port);
	}
	if (p[0] >> 4 != 6 || packet.len < IPV6_HEADER)
		return false;
	to->family = ADDR_V6;
	memcpy(to->bytes, p + 24, 16);
	return take_ports(p, packet.len, IPV6_HEADER, p[6], port);
}

bool watch_is_usable(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_PACKET &&
	       fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static bool may_write(struct watch *w)
{
	uint64_t now = clock_mono_us();
	w->tokens += (double)(now - w->last_us) * LIMIT_WATCH_RATE / 1e6;
	w->last_us = now;
	if (w->tokens > LIMIT_WATCH_BURST)
		w->tokens = LIMIT_WATCH_BURST;
	if (w->tokens < 1)
		return false;
	w->tokens -= 1;
	return true;
}

static void log_attempt(struct worker *w, const struct addr *to, uint16_t port)
{
	struct audit_event e;
	worker_event(&e, AUDIT_CONNECT, w->current[0]);
	e.decision = DECISION_BLOCK;
	e.reason = REASON_CONNECT_CAPTURED;
	e.stage = STAGE_CONNECT;
	e.address = to;
	e.port = port;
	worker_log_note(w, &e);
}

static void on_packets(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct watch *w = arg;
	char packet[PACKET_MAX];
	for (int i = 0; i < LIMIT_WATCH_PER_WAKEUP; i++) {
		ssize_t n = recv(fd, packet, sizeof(packet), 0);
		struct addr to;
		uint16_t port = 0;
		if (n < 0)
			return; /* no more of them, or the room's network is gone */
		if (watch_parse(slice_of(packet, (size_t)n), &to, &port) && may_write(w))
			log_attempt(w->worker, &to, port);
	}
}

struct watch *watch_new(struct worker *worker, int fd)
{
	struct watch *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->worker = worker;
	w->tokens = LIMIT_WATCH_BURST;
	w->last_us = clock_mono_us();
	w->event = event_new(loop_base(worker->loop), fd, EV_READ | EV_PERSIST, on_packets, w);
	if (w->event && event_add(w->event, NULL) == 0)
		return w;
	watch_free(&w);
	return NULL;
}

void watch_free(struct watch **w)
{
	if (!*w)
		return;
	if ((*w)->event)
		event_free((*w)->event);
	free(*w);
	*w = NULL;
}
