/* c-ares on the loop. c-ares can't cancel one query and calls back from inside its own functions, so a query has a
 * state that says who still holds it, and callers hear of answers at the end of the pass, outside of c-ares. */
#include "core/net/resolver.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/net/ares_events.h"
#include "core/net/system_servers.h"

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

struct resolver {
	struct ares_events events; /* first: what was processed finds its resolver by it */
	struct loop *loop;
	struct event *retry; /* when c-ares wants to send again or give up */
	struct resolve *waiting;
};

static void arm_retry(struct ares_events *events)
{
	struct resolver *r = (struct resolver *)events;
	struct timeval tv;
	if (ares_timeout(events->channel, NULL, &tv))
		event_add(r->retry, &tv);
	else
		event_del(r->retry);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct resolver *r = arg;
	ares_process_fd(r->events.channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm_retry(&r->events);
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
	};
	int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
		  ares_events_options(&r->events, &o);
	int status = ares_init_options(&r->events.channel, &o, set);
	if (status != ARES_SUCCESS || n == 0)
		return status;
	status = ares_set_addresses(r->events.channel, servers, n);
	if (status != ARES_SUCCESS)
		ares_destroy(r->events.channel);
	return status;
}

struct resolver *resolver_new(struct loop *l, const struct addr_port *servers, size_t n)
{
	if (n == 0 && system_server()) {
		servers = system_server();
		n = 1;
	}
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return NULL;
	struct resolver *r = calloc(1, sizeof(*r));
	if (!r)
		goto no_memory;
	r->loop = l;
	r->events.loop = l;
	r->events.on_processed = arm_retry;
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

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	(void)timeouts;
	struct resolve *q = arg;
	if (q->state == RESOLVE_FORGOTTEN) {
		free(q);
	} else {
		q->n = status == ARES_SUCCESS ? collect(ai, q->addrs) : 0;
		set_answer(q, q->n > 0 ? CAGE_OK : ares_failure(status));
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
	ares_getaddrinfo(q->owner->events.channel, text, NULL, &hints, on_answer, q);
	arm_retry(&q->owner->events);
}

struct resolve *resolver_query(struct resolver *r, struct slice name, resolve_cb cb, void *arg)
{
	struct timeval tv = loop_ms(LIMIT_RESOLVE_MS);
	struct resolve *q = r->events.channel ? calloc(1, sizeof(*q)) : NULL;
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
	ares_channel channel = r->events.channel;
	r->events.channel = NULL;
	ares_destroy(channel); /* answers every query */
	while (r->waiting) {
		struct resolve *q = r->waiting; /* report_answer takes it off the list, which the analyzer can't see */
		q->status = CAGE_ESYS;          // NOLINT(clang-analyzer-unix.Malloc)
		q->n = 0;
		loop_undefer(r->loop, &q->report);
		report_answer(&q->report);
	}
	ares_events_clear(&r->events);
	event_free(r->retry);
	free(r);
	ares_library_cleanup();
}
