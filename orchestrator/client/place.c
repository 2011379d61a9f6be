/* Finding and reaching the service. The token comes from the environment or a file, never from the command line, which every user
 * of a machine can read. */
#include "orchestrator/client/place.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/say.h"
#include "orchestrator/service/state_dir.h"

/* ---- where it is ---- */

static bool unix_place(const char *path, struct place *p)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&p->address;
	if (strlen(path) >= sizeof(un->sun_path)) {
		say("%s: the name of a socket has less than %zu bytes", path, sizeof(un->sun_path));
		return false;
	}
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
	snprintf(p->name, sizeof(p->name), "%s", path);
	snprintf(p->host, sizeof(p->host), "localhost");
	p->address_len = sizeof(*un);
	return true;
}

static bool default_place(struct place *p)
{
	char dir[PATH_MAX - sizeof(STATE_DIR_SOCKET)], path[PATH_MAX];
	if (!state_dir_path(NULL, dir, sizeof(dir))) {
		say("where is the service? Neither --socket nor CAGE_SOCKET is given, and there is no HOME");
		return false;
	}
	snprintf(path, sizeof(path), "%s/" STATE_DIR_SOCKET, dir);
	return unix_place(path, p);
}

/* "localhost:8090" is on 127.0.0.1; else only addresses: nothing here asks a name server. */
static bool parse_address(struct slice text, struct addr *addr, uint16_t *port)
{
	struct slice rest = text, host = slice_cut(&rest, ':');
	char spelled[32];
	if (!slice_eq(host, SLICE("localhost")))
		return addr_parse_with_port(text, addr, port);
	int n = snprintf(spelled, sizeof(spelled), "127.0.0.1:%.*s", (int)slice_head(rest, 8).len, rest.ptr);
	return addr_parse_with_port(slice_of(spelled, (size_t)n), addr, port);
}

static bool url_place(const char *url, struct place *p)
{
	struct slice rest = slice_str(url);
	struct addr addr;
	uint16_t port = 0;
	if (slice_ends(rest, SLICE("/")))
		rest.len--;
	bool ok = slice_starts(rest, SLICE("http://"));
	rest = slice_from(rest, strlen("http://"));
	if (!ok || rest.len >= sizeof(p->host) || !parse_address(rest, &addr, &port) || port == 0) {
		say("--url %s: expected http://ADDRESS:PORT, such as http://127.0.0.1:8090", url);
		return false;
	}
	p->address_len = addr_to_sockaddr(&addr, port, &p->address);
	snprintf(p->name, sizeof(p->name), "%s", url);
	snprintf(p->host, sizeof(p->host), "%.*s", SLICE_FMT(rest));
	return true;
}

/* ---- the token ---- */

static bool token_is_good(const char *token)
{
	for (const char *c = token; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return token[0] != '\0';
}

/* One line; what ends it is no part of it. */
static bool read_token(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, room);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		say("--token-file %s: %s", path, strerror(error));
		return false;
	}
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r'))
		n--;
	out[n < (ssize_t)room ? n : 0] = '\0';
	return true;
}

static bool find_token(const char *file, struct place *p)
{
	const char *given = getenv("CAGE_TOKEN");
	if (file && !read_token(file, p->token, sizeof(p->token)))
		return false;
	if (!file && !given) {
		say("over TCP a token is needed: CAGE_TOKEN, or --token-file FILE (cage serve --new-token makes one)");
		return false;
	}
	if (!file && snprintf(p->token, sizeof(p->token), "%s", given) >= (int)sizeof(p->token))
		p->token[0] = '\0';
	if (!token_is_good(p->token))
		say("%s: that is no token", file ? file : "CAGE_TOKEN");
	return token_is_good(p->token);
}

bool place_find(const struct place_options *o, struct place *out)
{
	const char *from_env = getenv("CAGE_SOCKET");
	memset(out, 0, sizeof(*out));
	if (o->url && o->socket) {
		say("--url and --socket: only one of them can be meant");
		return false;
	}
	if (o->url)
		return url_place(o->url, out) && find_token(o->token_file, out);
	if (o->token_file) {
		say("--token-file: needs --url; a unix socket takes no token");
		return false;
	}
	if (o->socket)
		return unix_place(o->socket, out);
	return from_env && from_env[0] ? unix_place(from_env, out) : default_place(out);
}

/* ---- reaching it ---- */

/* On TCP, an end that is gone without a word is noticed. */
static void keep_alive(int fd)
{
	static const int on = 1, every = LIMIT_CLIENT_KEEPALIVE_S;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
}

/* 0, or what connect() failed with. */
static int connect_within(int fd, const struct place *p)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);
	if (connect(fd, (const struct sockaddr *)&p->address, p->address_len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&wait, 1, LIMIT_CLIENT_CONNECT_MS) != 1)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

static void say_unreachable(const struct place *p, int error)
{
	say("no service at %s: %s", p->name, strerror(error));
	if (p->address.ss_family == AF_UNIX && (error == ENOENT || error == ECONNREFUSED))
		say("cage serve starts one; --socket, --url or CAGE_SOCKET say where else it is");
}

int place_connect(const struct place *p)
{
	int fd = socket(p->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = fd < 0 ? errno : connect_within(fd, p);
	if (error) {
		say_unreachable(p, error);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (p->address.ss_family != AF_UNIX)
		keep_alive(fd);
	return fd;
}
