/* c-ares says which sockets it has and what it waits for on them; it is called back when that happens. */
#include "core/net/ares_events.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct ares_watch {
	struct ares_watch *next;
	struct ares_events *owner;
	struct event *ev;
	int fd;
};

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct ares_watch *w = arg;
	struct ares_events *e = w->owner; /* w may be gone after the call */
	ares_process_fd(e->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	if (e->on_processed)
		e->on_processed(e);
}

static void watch_remove(struct ares_watch **link)
{
	struct ares_watch *w = *link;
	*link = w->next;
	if (w->ev)
		event_free(w->ev);
	free(w);
}

static struct ares_watch *watch_add(struct ares_events *e, int fd)
{
	struct ares_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->owner = e;
	w->fd = fd;
	w->next = e->watches;
	e->watches = w;
	return w;
}

/* Nothing to wait for at all means that it closes the socket. Without memory the socket is not watched and the query
 * ends by its deadline. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct ares_events *e = arg;
	struct ares_watch **link = &e->watches;
	short events = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	if (events == 0) {
		if (*link)
			watch_remove(link);
		return;
	}
	struct ares_watch *w = *link ? *link : watch_add(e, fd);
	if (!w)
		return;
	if (w->ev)
		event_free(w->ev);
	w->ev = event_new(loop_base(e->loop), fd, (short)(events | EV_PERSIST), on_socket, w);
	if (w->ev)
		event_add(w->ev, NULL);
}

int ares_events_options(struct ares_events *e, struct ares_options *o)
{
	o->sock_state_cb = on_socket_state;
	o->sock_state_cb_data = e;
	return ARES_OPT_SOCK_STATE_CB;
}

void ares_events_clear(struct ares_events *e)
{
	while (e->watches)
		watch_remove(&e->watches);
}

int ares_set_addresses(ares_channel channel, const struct addr_port *servers, size_t n)
{
	struct ares_addr_port_node *nodes = calloc(n, sizeof(*nodes));
	if (!nodes)
		return ARES_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		bool v4 = servers[i].addr.family == ADDR_V4;
		nodes[i].family = v4 ? AF_INET : AF_INET6;
		memcpy(&nodes[i].addr, servers[i].addr.bytes, v4 ? 4 : 16);
		nodes[i].udp_port = nodes[i].tcp_port = servers[i].port;
		nodes[i].next = i + 1 < n ? &nodes[i + 1] : NULL;
	}
	int status = ares_set_servers_ports(channel, nodes);
	free(nodes);
	return status;
}

/* c-ares says "refused" also when it could not even open a socket; whether that was our own lack shows one of ours. */
static bool lacks_sockets(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		close(fd);
		return false;
	}
	return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

enum cage_status ares_failure(int status)
{
	if (status == ARES_ETIMEOUT)
		return CAGE_ETIMEOUT;
	return status == ARES_ECONNREFUSED && lacks_sockets() ? CAGE_ELIMIT : CAGE_ESYS;
}
