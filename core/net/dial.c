/* Staggered connects. An attempt that fails starts the next at once; one that hangs does so after the stagger time. The
 * first to connect wins, the others are closed. The outcome is told at the end of the pass, never from inside a call.
 */
#include "core/net/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/limits.h"

enum dial_state {
	DIAL_CONNECTING,
	DIAL_DECIDED,  /* the outcome waits for the end of the pass */
	DIAL_REPORTING /* the caller's callback is running */
};

struct attempt {
	struct dial *owner;
	struct event *writable; /* NULL: not under way */
	int fd;
};

struct dial {
	struct deferred report; /* first: the deferred work finds its dial by it */
	enum dial_state state;
	struct loop *loop;
	dial_cb cb;
	void *arg;
	uint16_t port;
	size_t n, started; /* addresses, and how many were tried */
	struct addr addrs[LIMIT_DIAL_ATTEMPTS];
	struct attempt attempts[LIMIT_DIAL_ATTEMPTS];
	struct event *stagger, *deadline;
	int error;     /* errno: the most telling of the failures */
	int fd;        /* the winner's, or -1 */
	size_t winner; /* its index */
};

/* "Refused" was said by the target itself; "no route" often only says that this machine has no IPv6. */
static int error_weight(int error)
{
	switch (error) {
	case 0:
		return 0;
	case ENETUNREACH:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return 1;
	case ETIMEDOUT:
		return 3;
	case ECONNREFUSED:
	case ECONNRESET:
		return 4;
	default:
		return 2;
	}
}

static void note_error(struct dial *d, int error)
{
	if (error_weight(error) > error_weight(d->error))
		d->error = error;
}

/* Hands out the descriptor. */
static int attempt_end(struct attempt *t)
{
	event_free(t->writable);
	t->writable = NULL;
	return t->fd;
}

static bool is_under_way(const struct dial *d)
{
	for (size_t i = 0; i < d->started; i++)
		if (d->attempts[i].writable)
			return true;
	return false;
}

static void close_attempts(struct dial *d)
{
	for (size_t i = 0; i < d->started; i++)
		if (d->attempts[i].writable)
			close(attempt_end(&d->attempts[i]));
}

static void decide(struct dial *d)
{
	close_attempts(d);
	event_del(d->stagger);
	event_del(d->deadline);
	d->state = DIAL_DECIDED;
	loop_defer(d->loop, &d->report);
}

static void on_writable(evutil_socket_t fd, short what, void *arg);

/* An fd whose connect is under way, or -1 with errno. */
static int open_and_connect(const struct addr *a, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(a, port, &ss);
	int one = 1;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
	    (connect(fd, (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS))
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static bool attempt_start(struct dial *d, size_t i)
{
	struct attempt *t = &d->attempts[i];
	t->owner = d;
	t->fd = open_and_connect(&d->addrs[i], d->port);
	if (t->fd < 0) {
		note_error(d, errno);
		return false;
	}
	t->writable = event_new(loop_base(d->loop), t->fd, EV_WRITE, on_writable, t);
	if (!t->writable || event_add(t->writable, NULL) != 0) {
		note_error(d, ENOMEM);
		if (t->writable)
			attempt_end(t);
		close(t->fd);
		return false;
	}
	return true;
}

/* Tries addresses until a connect is under way; when there is none any more and none to wait for, that was it. */
static void start_next(struct dial *d)
{
	struct timeval tv = loop_ms(LIMIT_DIAL_STAGGER_MS);
	while (d->started < d->n) {
		if (!attempt_start(d, d->started++))
			continue;
		if (d->started < d->n)
			event_add(d->stagger, &tv);
		return;
	}
	event_del(d->stagger);
	if (!is_under_way(d))
		decide(d);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct attempt *t = arg;
	struct dial *d = t->owner;
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error == 0) {
		d->fd = attempt_end(t);
		d->winner = (size_t)(t - d->attempts);
		decide(d);
		return;
	}
	close(attempt_end(t));
	note_error(d, error);
	start_next(d);
}

static void on_stagger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	start_next(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct dial *d = arg;
	note_error(d, ETIMEDOUT);
	decide(d);
}

static void dial_destroy(struct dial *d)
{
	if (d->stagger)
		event_free(d->stagger);
	if (d->deadline)
		event_free(d->deadline);
	free(d);
}

static void report_outcome(struct deferred *deferred)
{
	struct dial *d = (struct dial *)deferred;
	d->state = DIAL_REPORTING;
	if (d->fd >= 0) {
		d->cb(d->arg, CAGE_OK, d->fd, &d->addrs[d->winner]);
	} else {
		errno = d->error;
		d->cb(d->arg, d->error == ETIMEDOUT ? CAGE_ETIMEOUT : CAGE_ESYS, -1, NULL);
	}
	dial_destroy(d);
}

struct dial *dial_start(struct loop *l, const struct addr *addrs, size_t n, uint16_t port, dial_cb cb, void *arg)
{
	struct timeval tv = loop_ms(LIMIT_CONNECT_MS);
	struct dial *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->report.run = report_outcome;
	d->loop = l;
	d->cb = cb;
	d->arg = arg;
	d->port = port;
	d->error = n > 0 ? 0 : EADDRNOTAVAIL;
	d->fd = -1;
	d->n = n < LIMIT_DIAL_ATTEMPTS ? n : LIMIT_DIAL_ATTEMPTS;
	for (size_t i = 0; i < d->n; i++)
		d->addrs[i] = addrs[i];
	d->stagger = evtimer_new(loop_base(l), on_stagger, d);
	d->deadline = evtimer_new(loop_base(l), on_deadline, d);
	if (!d->stagger || !d->deadline || event_add(d->deadline, &tv) != 0) {
		dial_destroy(d);
		return NULL;
	}
	start_next(d);
	return d;
}

void dial_cancel(struct dial **dp)
{
	struct dial *d = *dp;
	*dp = NULL;
	if (!d || d->state == DIAL_REPORTING)
		return;
	close_attempts(d);
	if (d->fd >= 0)
		close(d->fd);
	loop_undefer(d->loop, &d->report);
	dial_destroy(d);
}
