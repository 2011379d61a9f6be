/* c-ares on the loop. c-ares can't cancel one query and calls back from inside its own functions, so a query has a
 * state that says who still holds it, and callers hear of answers at the end of the pass, outside of c-ares. */
#include "core/net/resolver.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/limits.h"

enum resolve_state {
	RESOLVE_ASKED,     /* c-ares holds it, the caller waits */
	RESOLVE_ANSWERED,  /* the answer waits for the end of the pass */
	RESOLVE_REPORTING, /* the caller's callback is running */
	RESOLVE_FORGOTTEN  /* the caller is gone, c-ares holds it still and frees it by its callback */
};

struct resolve {
	struct deferred report; /* first: the deferred work finds its query by it */
	enum resolve_state state;
	struct resolver *owner;
	struct resolve *next, **link; /* in owner->waiting, in the states ASKED and ANSWERED */
	struct event *deadline;
	resolve_cb cb;
	void *arg;
	enum cage_status status;
	size_t n;
	struct addr addrs[LIMIT_ANSWERS];
};

/* A socket of c-ares. */
struct watch {
	struct watch *next;
	struct resolver *owner;
	struct event *ev;
	int fd;
};

struct resolver {
	struct loop *loop;
	ares_channel channel; /* NULL while it is being freed */
	struct event *retry;  /* when c-ares wants to send again or give up */
	struct watch *watches;
	struct resolve *waiting;
};

static void arm_retry(struct resolver *r)
{
	struct timeval tv;
	if (ares_timeout(r->channel, NULL, &tv))
		event_add(r->retry, &tv);
	else
		event_del(r->retry);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct resolver *r = arg;
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm_retry(r);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	struct resolver *r = w->owner; /* w may be gone after the call */
	ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	arm_retry(r);
}

static void watch_remove(struct watch **link)
{
	struct watch *w = *link;
	*link = w->next;
	if (w->ev)
		event_free(w->ev);
	free(w);
}

static struct watch *watch_add(struct resolver *r, int fd)
{
	struct watch *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->owner = r;
	w->fd = fd;
	w->next = r->watches;
	r->watches = w;
	return w;
}

/* c-ares says what it waits for on a socket; nothing at all means that it closes it. Without memory the socket is not
 * watched and the query ends by its deadline. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = arg;
	struct watch **link = &r->watches;
	short events = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	if (events == 0) {
		if (*link)
			watch_remove(link);
		return;
	}
	struct watch *w = *link ? *link : watch_add(r, fd);
	if (!w)
		return;
	if (w->ev)
		event_free(w->ev);
	w->ev = event_new(loop_base(r->loop), fd, (short)(events | EV_PERSIST), on_socket, w);
	if (w->ev)
		event_add(w->ev, NULL);
}

static int set_servers(ares_channel channel, const struct addr_port *servers, size_t n)
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

/* The name that was allowed is the name that is asked for: no aliases from the environment and no search domains
 * (getaddrinfo of c-ares 1.18 ignores NOSEARCH, so the list of domains is made empty). */
static int open_channel(struct resolver *r, const struct addr_port *servers, size_t n)
{
	char from_hosts_too[] = "fb", from_servers[] = "b";
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = LIMIT_RESOLVE_TRY_MS,
		.tries = LIMIT_RESOLVE_TRIES,
		.lookups = n > 0 ? from_servers : from_hosts_too,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
	};
	int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
		  ARES_OPT_SOCK_STATE_CB;
	int status = ares_init_options(&r->channel, &o, set);
	if (status != ARES_SUCCESS || n == 0)
		return status;
	status = set_servers(r->channel, servers, n);
	if (status != ARES_SUCCESS)
		ares_destroy(r->channel);
	return status;
}

struct resolver *resolver_new(struct loop *l, const struct addr_port *servers, size_t n)
{
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return NULL;
	struct resolver *r = calloc(1, sizeof(*r));
	if (!r)
		goto no_memory;
	r->loop = l;
	r->retry = evtimer_new(loop_base(l), on_retry, r);
	if (!r->retry)
		goto no_timer;
	if (open_channel(r, servers, n) == ARES_SUCCESS)
		return r;
	event_free(r->retry);
no_timer:
	free(r);
no_memory:
	ares_library_cleanup();
	return NULL;
}

static void unlink_waiting(struct resolve *q)
{
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
}

/* The caller hears no more of it; c-ares does not know. */
static void forget(struct resolve *q)
{
	unlink_waiting(q);
	event_free(q->deadline);
	q->state = RESOLVE_FORGOTTEN;
}

static void report_answer(struct deferred *d)
{
	struct resolve *q = (struct resolve *)d;
	unlink_waiting(q);
	event_free(q->deadline);
	q->state = RESOLVE_REPORTING;
	q->cb(q->arg, q->status, q->addrs, q->n);
	free(q);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct resolve *q = arg;
	if (q->state != RESOLVE_ASKED)
		return; /* answered in this very pass */
	resolve_cb cb = q->cb;
	void *cb_arg = q->arg;
	forget(q);
	cb(cb_arg, CAGE_ETIMEOUT, NULL, 0);
}

/* Addresses of one family, each once, up to a bound. */
struct address_list {
	struct addr addrs[LIMIT_ANSWERS];
	size_t n;
};

static void list_add(struct address_list *list, const struct addr *a)
{
	for (size_t i = 0; i < list->n; i++)
		if (addr_eq(&list->addrs[i], a))
			return;
	if (list->n < LIMIT_ANSWERS)
		list->addrs[list->n++] = *a;
}

/* IPv6 first, then one of each in turn, so that a dialler tries both soon. */
static size_t interleave(const struct address_list *v6, const struct address_list *v4, struct addr out[LIMIT_ANSWERS])
{
	size_t n = 0;
	for (size_t i = 0; i < LIMIT_ANSWERS; i++) {
		if (i < v6->n && n < LIMIT_ANSWERS)
			out[n++] = v6->addrs[i];
		if (i < v4->n && n < LIMIT_ANSWERS)
			out[n++] = v4->addrs[i];
	}
	return n;
}

static size_t collect(const struct ares_addrinfo *ai, struct addr out[LIMIT_ANSWERS])
{
	struct address_list v6 = {.n = 0}, v4 = {.n = 0};
	struct addr a;
	uint16_t port;
	for (const struct ares_addrinfo_node *node = ai->nodes; node; node = node->ai_next)
		if (addr_from_sockaddr(node->ai_addr, &a, &port))
			list_add(a.family == ADDR_V6 ? &v6 : &v4, &a);
	return interleave(&v6, &v4, out);
}

static void set_answer(struct resolve *q, enum cage_status st)
{
	q->status = st;
	q->state = RESOLVE_ANSWERED;
	loop_defer(q->owner->loop, &q->report);
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

static enum cage_status failure(int status)
{
	if (status == ARES_ETIMEOUT)
		return CAGE_ETIMEOUT;
	return status == ARES_ECONNREFUSED && lacks_sockets() ? CAGE_ELIMIT : CAGE_ESYS;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	(void)timeouts;
	struct resolve *q = arg;
	if (q->state == RESOLVE_FORGOTTEN) {
		free(q);
	} else {
		q->n = status == ARES_SUCCESS ? collect(ai, q->addrs) : 0;
		set_answer(q, q->n > 0 ? CAGE_OK : failure(status));
	}
	ares_freeaddrinfo(ai);
}

static void ask(struct resolve *q, struct slice name)
{
	static const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT};
	char text[LIMIT_HOST + 1];
	if (name.len == 0 || name.len > LIMIT_HOST || slice_find(name, '\0') < name.len) {
		set_answer(q, CAGE_ESYS);
		return;
	}
	memcpy(text, name.ptr, name.len);
	text[name.len] = '\0';
	ares_getaddrinfo(q->owner->channel, text, NULL, &hints, on_answer, q);
	arm_retry(q->owner);
}

struct resolve *resolver_query(struct resolver *r, struct slice name, resolve_cb cb, void *arg)
{
	struct timeval tv = loop_ms(LIMIT_RESOLVE_MS);
	struct resolve *q = r->channel ? calloc(1, sizeof(*q)) : NULL;
	if (!q)
		return NULL;
	q->deadline = evtimer_new(loop_base(r->loop), on_deadline, q);
	if (!q->deadline || event_add(q->deadline, &tv) != 0) {
		if (q->deadline)
			event_free(q->deadline);
		free(q);
		return NULL;
	}
	q->report.run = report_answer;
	q->owner = r;
	q->cb = cb;
	q->arg = arg;
	q->next = r->waiting;
	q->link = &r->waiting;
	if (q->next)
		q->next->link = &q->next;
	r->waiting = q;
	ask(q, name);
	return q;
}

void resolve_cancel(struct resolve **qp)
{
	struct resolve *q = *qp;
	*qp = NULL;
	if (!q)
		return;
	switch (q->state) {
	case RESOLVE_ASKED:
		forget(q);
		break;
	case RESOLVE_ANSWERED:
		loop_undefer(q->owner->loop, &q->report);
		forget(q);
		free(q);
		break;
	case RESOLVE_REPORTING:
	case RESOLVE_FORGOTTEN:
		break;
	}
}

void resolver_free(struct resolver **rp)
{
	struct resolver *r = *rp;
	if (!r)
		return;
	*rp = NULL;
	ares_channel channel = r->channel;
	r->channel = NULL;
	ares_destroy(channel); /* answers every query */
	while (r->waiting) {
		struct resolve *q = r->waiting; /* report_answer takes it off the list, which the analyzer can't see */
		q->status = CAGE_ESYS;          // NOLINT(clang-analyzer-unix.Malloc)
		q->n = 0;
		loop_undefer(r->loop, &q->report);
		report_answer(&q->report);
	}
	while (r->watches)
		watch_remove(&r->watches);
	event_free(r->retry);
	free(r);
	ares_library_cleanup();
}
