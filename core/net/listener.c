/* Opening of listening sockets, and accepting from them in bounded batches. */
#include "core/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/limits.h"

static bool parse_unix(struct slice path, struct listen_spec *out, const char **why)
{
	if (path.len == 0 || path.len >= sizeof(out->path)) {
		*why = "the path of a unix socket has 1 to 107 bytes";
		return false;
	}
	out->kind = LISTEN_UNIX;
	memcpy(out->path, path.ptr, path.len);
	return true;
}

static bool parse_fd(struct slice number, struct listen_spec *out, const char **why)
{
	uint64_t fd;
	if (!slice_to_u64(number, INT_MAX, &fd)) {
		*why = "fd: takes the number of an open descriptor";
		return false;
	}
	out->kind = LISTEN_FD;
	out->fd = (int)fd;
	return true;
}

bool listen_spec_parse(const char *text, struct listen_spec *out, const char **why)
{
	struct slice s = slice_str(text), unix_prefix = SLICE("unix:"), fd_prefix = SLICE("fd:"), link = SLICE("link:");
	*out = (struct listen_spec){.fd = -1};
	if (slice_starts(s, unix_prefix))
		return parse_unix(slice_from(s, unix_prefix.len), out, why);
	if (slice_starts(s, fd_prefix))
		return parse_fd(slice_from(s, fd_prefix.len), out, why);
	out->kind = LISTEN_TCP;
	out->is_by_link = slice_starts(s, link);
	if (out->is_by_link)
		s = slice_from(s, link.len);
	if (addr_parse_with_port(s, &out->at.addr, &out->at.port))
		return true;
	*why = "expected ADDRESS:PORT, [IPV6]:PORT, link:ADDRESS:PORT, unix:PATH or fd:N";
	return false;
}

/* Closes fd and keeps errno. */
static int fail(int fd)
{
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static bool has_address(const struct ifaddrs *a, const struct addr *wanted)
{
	struct addr own;
	uint16_t port;
	return a->ifa_addr && addr_from_sockaddr(a->ifa_addr, &own, &port) && addr_eq(&own, wanted);
}

bool listen_by_link(int fd, const struct addr *at)
{
	struct ifaddrs *all = NULL;
	const struct ifaddrs *a = getifaddrs(&all) == 0 ? all : NULL;
	while (a && !has_address(a, at))
		a = a->ifa_next;
	errno = EADDRNOTAVAIL;
	const bool ok =
		a && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, a->ifa_name, (socklen_t)strlen(a->ifa_name)) == 0;
	const int error = errno;
	if (all)
		freeifaddrs(all);
	errno = error;
	return ok;
}

static int open_tcp(const struct listen_spec *spec, bool reuseport)
{
	const struct addr_port *at = &spec->at;
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&at->addr, at->port, &ss);
	int one = 1;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
		return fail(fd);
	if (ss.ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0)
		return fail(fd);
	if (reuseport && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0)
		return fail(fd);
	if ((spec->is_by_link && !listen_by_link(fd, &at->addr)) || bind(fd, (struct sockaddr *)&ss, len) != 0 ||
	    listen(fd, SOMAXCONN) != 0)
		return fail(fd);
	return fd;
}

/* A socket file that refuses connections was left behind by a process that is gone. Other files refuse as well, so the
 * type is looked at first. */
static bool is_stale(const struct sockaddr_un *un)
{
	struct stat st;
	if (lstat(un->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return false;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool refused = connect(fd, (const struct sockaddr *)un, sizeof(*un)) != 0 && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

/* The mode comes from the umask, so that the socket is never open to others, not even for a moment. */
static int bind_unix(int fd, const struct sockaddr_un *un)
{
	mode_t before = umask(0117);
	int rc = bind(fd, (const struct sockaddr *)un, sizeof(*un));
	umask(before);
	return rc;
}

static int open_unix(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	_Static_assert(sizeof(un.sun_path) == sizeof(((struct listen_spec *)0)->path), "a whole path must fit");
	memcpy(un.sun_path, path, sizeof(un.sun_path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (is_stale(&un) && unlink(path) != 0)
		return fail(fd);
	if (bind_unix(fd, &un) != 0 || listen(fd, SOMAXCONN) != 0)
		return fail(fd);
	return fd;
}

static int adopt(int fd)
{
	int listening = 0;
	socklen_t len = sizeof(listening);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0)
		return -1;
	if (!listening) {
		errno = EINVAL;
		return -1;
	}
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return -1;
	return fd;
}

int listen_open(const struct listen_spec *spec, bool reuseport)
{
	switch (spec->kind) {
	case LISTEN_TCP:
		return open_tcp(spec, reuseport);
	case LISTEN_UNIX:
		return open_unix(spec->path);
	case LISTEN_FD:
		return adopt(spec->fd);
	}
	errno = EINVAL;
	return -1;
}

void listen_spec_format(const struct listen_spec *spec, char *out, size_t room)
{
	char text[ADDR_TEXT];
	struct slice addr;
	switch (spec->kind) {
	case LISTEN_TCP:
		addr = addr_format(&spec->at.addr, text);
		snprintf(out, room, spec->at.addr.family == ADDR_V6 ? "[%.*s]:%u" : "%.*s:%u", SLICE_FMT(addr),
			 spec->at.port);
		break;
	case LISTEN_UNIX:
		snprintf(out, room, "unix:%s", spec->path);
		break;
	case LISTEN_FD:
		snprintf(out, room, "fd:%d", spec->fd);
		break;
	}
}

bool listen_address(int fd, struct addr_port *out)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	return getsockname(fd, (struct sockaddr *)&ss, &len) == 0 &&
	       addr_from_sockaddr((struct sockaddr *)&ss, &out->addr, &out->port);
}

enum listener_state {
	LISTENER_ACCEPTING,
	LISTENER_RESTING, /* no descriptors left: the timer runs */
	LISTENER_FREED    /* in the middle of a batch, which frees it */
};

struct listener {
	enum listener_state state;
	bool in_batch;
	int fd;
	struct event *readable, *rest;
	accept_cb cb;
	void *arg;
};

/* The only place that changes the state. */
static void listener_enter(struct listener *l, enum listener_state state)
{
	struct timeval tv = {0, LIMIT_ACCEPT_REST_MS * 1000};
	l->state = state;
	if (state == LISTENER_ACCEPTING)
		event_add(l->readable, NULL);
	else
		event_del(l->readable);
	if (state == LISTENER_RESTING)
		event_add(l->rest, &tv);
	else
		event_del(l->rest);
}

static void listener_destroy(struct listener *l)
{
	if (l->readable)
		event_free(l->readable);
	if (l->rest)
		event_free(l->rest);
	free(l);
}

/* False when nobody waits any more. */
static bool accept_one(struct listener *l)
{
	int one = 1;
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* fails on unix sockets */
		l->cb(l->arg, fd);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		return false;
	case EINTR: /* and what Linux reports of a connection that died in the queue */
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return true;
	default: /* EMFILE, ENFILE, ENOBUFS, ENOMEM; anything else must not make the loop spin either */
		listener_enter(l, LISTENER_RESTING);
		return false;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct listener *l = arg;
	int left = LIMIT_ACCEPTS_PER_WAKEUP;
	l->in_batch = true;
	while (left-- > 0 && l->state == LISTENER_ACCEPTING && accept_one(l))
		;
	l->in_batch = false;
	if (l->state == LISTENER_FREED)
		listener_destroy(l);
}

static void on_rested(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	listener_enter(arg, LISTENER_ACCEPTING);
}

struct listener *listener_new(struct loop *loop, int listen_fd, accept_cb cb, void *arg)
{
	struct listener *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->fd = listen_fd;
	l->cb = cb;
	l->arg = arg;
	l->readable = event_new(loop_base(loop), listen_fd, EV_READ | EV_PERSIST, on_readable, l);
	l->rest = evtimer_new(loop_base(loop), on_rested, l);
	if (!l->readable || !l->rest) {
		listener_destroy(l);
		return NULL;
	}
	listener_enter(l, LISTENER_ACCEPTING);
	return l;
}

void listener_free(struct listener **lp)
{
	struct listener *l = *lp;
	if (!l)
		return;
	*lp = NULL;
	listener_enter(l, LISTENER_FREED);
	if (!l->in_batch)
		listener_destroy(l);
}
