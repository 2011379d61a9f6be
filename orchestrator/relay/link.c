/* Two sockets and a buffer for each direction. An end of one side is told to the other when all before it was sent, so that a half-closed
 * connection stays one; a broken side breaks the other. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/relay/relay.h"

/* ---- ends ---- */

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void link_end(struct link *l)
{
	shut(&l->near);
	shut(&l->far);
	l->state = LINK_FREE;
}

/* A side that sees a reset knows that not all has come. */
static void link_break(struct link *l)
{
	const struct linger reset = {.l_onoff = 1};
	if (l->near >= 0)
		setsockopt(l->near, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (l->far >= 0)
		setsockopt(l->far, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	link_end(l);
}

/* ---- the beginning ---- */

/* Nothing is heard of a machine that is gone: the kernel asks. */
static bool watch_peer(int fd)
{
	const int on = 1, silence = LIMIT_RELAY_ALIVE_S, asked = LIMIT_RELAY_ALIVE_ASKED;
	const unsigned unanswered = LIMIT_RELAY_UNANSWERED_MS;
	return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silence, sizeof(silence)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &silence, sizeof(silence)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &asked, sizeof(asked)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof(unanswered)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

/* Said once, until one succeeds again. */
static void fail(struct link *l, int why)
{
	char text[ADDR_TEXT];
	if (!l->carry->is_failing)
		say("%.*s port %u: %s", SLICE_FMT(addr_format(&l->carry->to, text)), l->carry->to_port, strerror(why));
	l->carry->is_failing = true;
	link_break(l);
}

void link_begin(struct link *l, struct carry *c, int near)
{
	const int on = 1;
	struct sockaddr_storage at;
	const socklen_t len = addr_to_sockaddr(&c->to, c->to_port, &at);
	l->state = LINK_CONNECTS;
	l->carry = c;
	l->near = near;
	l->until_us = clock_mono_us() + LIMIT_RELAY_CONNECT_MS * 1000ull;
	l->out.state = l->in.state = FLOW_OPEN;
	l->out.at = l->out.end = l->in.at = l->in.end = 0;
	l->far = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (l->far < 0 || !watch_peer(l->far) ||
	    (connect(l->far, (const struct sockaddr *)&at, len) != 0 && errno != EINPROGRESS))
		fail(l, errno);
}

static void take_connection(struct link *l)
{
	int why = 0;
	socklen_t len = sizeof(why);
	if (getsockopt(l->far, SOL_SOCKET, SO_ERROR, &why, &len) != 0)
		why = errno;
	if (why) {
		fail(l, why);
		return;
	}
	l->carry->is_failing = false;
	l->state = LINK_CARRIES;
}

/* ---- bytes ---- */

static bool is_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* False: the side that is read from is broken. */
static bool read_some(struct flow *f, int from)
{
	ssize_t n = read(from, f->bytes + f->end, sizeof(f->bytes) - f->end);
	if (n > 0)
		f->end += (size_t)n;
	if (n == 0)
		f->state = FLOW_ENDING;
	return n >= 0 || is_later();
}

static bool write_some(struct flow *f, int to)
{
	while (f->at < f->end) {
		ssize_t n = send(to, f->bytes + f->at, f->end - f->at, MSG_NOSIGNAL);
		if (n < 0)
			return is_later();
		f->at += (size_t)n;
	}
	f->at = f->end = 0;
	if (f->state != FLOW_ENDING)
		return true;
	f->state = FLOW_ENDED;
	return shutdown(to, SHUT_WR) == 0;
}

/* What has come is taken from the budget before it goes on. */
static bool pay(struct relay *r, size_t n)
{
	if (!r->has_budget)
		return true;
	if (n > r->out_left) {
		if (r->out_left > 0)
			say("all that may be sent was sent: nothing more is carried");
		r->out_left = 0;
		return false;
	}
	r->out_left -= n;
	return true;
}

static bool carry_out(struct link *l, struct relay *r, bool is_readable)
{
	const size_t before = l->out.end;
	if (is_readable && !read_some(&l->out, l->near))
		return false;
	return pay(r, l->out.end - before) && write_some(&l->out, l->far);
}

static bool carry_in(struct link *l, bool is_readable)
{
	return (!is_readable || read_some(&l->in, l->far)) && write_some(&l->in, l->near);
}

/* ---- events ---- */

static bool has_room(const struct flow *f)
{
	return f->state == FLOW_OPEN && f->end < sizeof(f->bytes);
}

static bool waits(const struct flow *f)
{
	return f->at < f->end;
}

static struct pollfd wants(int fd, const struct flow *from, const struct flow *to)
{
	const short events = (short)((has_room(from) ? POLLIN : 0) | (waits(to) ? POLLOUT : 0));
	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

void link_wants(const struct link *l, struct pollfd at[2])
{
	at[0] = at[1] = (struct pollfd){.fd = -1};
	if (l->state == LINK_CONNECTS)
		at[1] = (struct pollfd){.fd = l->far, .events = POLLOUT};
	if (l->state != LINK_CARRIES)
		return;
	at[0] = wants(l->near, &l->out, &l->in);
	at[1] = wants(l->far, &l->in, &l->out);
}

static bool can_read(const struct pollfd *at)
{
	return at->fd >= 0 && (at->events & POLLIN) && (at->revents & (POLLIN | POLLHUP | POLLERR));
}

static bool is_due(const struct pollfd *at)
{
	return at->fd >= 0 && at->revents;
}

void link_go_on(struct link *l, struct relay *r, const struct pollfd at[2])
{
	if (l->state == LINK_CONNECTS) {
		if (is_due(&at[1]))
			take_connection(l);
		else if (clock_mono_us() >= l->until_us)
			fail(l, ETIMEDOUT);
		return;
	}
	if (l->state == LINK_FREE || (!is_due(&at[0]) && !is_due(&at[1])))
		return;
	if (!carry_out(l, r, can_read(&at[0])) || !carry_in(l, can_read(&at[1])))
		link_break(l);
	else if (l->out.state == FLOW_ENDED && l->in.state == FLOW_ENDED)
		link_end(l);
}
