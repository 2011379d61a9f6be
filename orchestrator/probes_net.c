/* Probes of the network. What is captured does connect, to the proxy: there it counts what is answered. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/probes.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t make_address(union address *a, const char *text, long port)
{
	*a = (union address){.v6 = {.sin6_family = AF_INET6}};
	if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_port = htons((uint16_t)port);
		return sizeof(a->v6);
	}
	*a = (union address){.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}};
	inet_pton(AF_INET, text, &a->v4.sin_addr);
	return sizeof(a->v4);
}

/* A connected socket, or -1 with errno; the process's alarm ends what hangs. */
static int open_to(const char *text, long port, int type)
{
	union address a;
	socklen_t len = make_address(&a, text, port);
	int fd = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, &a.any, len) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The bytes that come back, up to the end or the room's; 0: the end, and nothing before it; -1 with errno. */
static ssize_t exchange(int fd, const char *said, char *out, size_t room)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	ssize_t n = 1;
	out[0] = '\0';
	if (fd < 0 || send(fd, said, strlen(said), MSG_NOSIGNAL) < 0)
		return -1;
	while (n > 0 && len < room - 1) {
		errno = ETIMEDOUT;
		n = poll(&p, 1, LIMIT_PROBE_MS) > 0 ? recv(fd, out + len, room - 1 - len, 0) : -1;
		len += n > 0 ? (size_t)n : 0;
	}
	out[len] = '\0';
	return len > 0 ? (ssize_t)len : n;
}

/* The answer of somebody: ours is a refusal, anybody else's a way out. */
static enum probe_result judge(const char *answer)
{
	return strstr(answer, "blocked_by_cage") ? PROBE_FAILS : PROBE_WORKS;
}

/* What is captured connects to the proxy, in a room with a network of its own; elsewhere nobody is there. */
static enum probe_result ask_captured(const struct probe *p, const char *request, bool may_be_silent)
{
	char answer[4096];
	int fd = open_to(p->text, p->number, SOCK_STREAM);
	if (fd < 0)
		return probe_unanswered();
	ssize_t n = exchange(fd, request, answer, sizeof(answer));
	if (n > 0)
		return judge(answer);
	return may_be_silent && (n == 0 || errno == ECONNRESET) ? PROBE_FAILS : PROBE_UNCLEAR;
}

enum probe_result probe_tcp(const struct probe *p)
{
	return open_to(p->text, p->number, SOCK_STREAM) >= 0 ? PROBE_WORKS : probe_refused(p);
}

enum probe_result probe_udp(const struct probe *p)
{
	char answer[512];
	int fd = open_to(p->text, p->number, SOCK_DGRAM);
	return exchange(fd, "cage", answer, sizeof(answer)) >= 0 ? PROBE_WORKS : probe_refused(p);
}

enum probe_result probe_http(const struct probe *p)
{
	char request[256];
	bool is_v6 = strchr(p->text, ':') != NULL;
	snprintf(request, sizeof(request),
		 "GET /metadata/instance HTTP/1.1\r\nHost: %s%s%s\r\nMetadata: true\r\nConnection: close\r\n\r\n",
		 is_v6 ? "[" : "", p->text, is_v6 ? "]" : "");
	return ask_captured(p, request, false);
}

enum probe_result probe_speak(const struct probe *p)
{
	return ask_captured(p, "SSH-2.0-cage\r\n\r\n", true);
}

enum probe_result probe_proxy(const struct probe *p)
{
	char request[256], answer[4096];
	snprintf(request, sizeof(request), "%s HTTP/1.1\r\nConnection: close\r\n\r\n", p->text);
	ssize_t n = exchange(open_to(probes_room.helpers, 8080, SOCK_STREAM), request, answer, sizeof(answer));
	return n > 0 ? judge(answer) : PROBE_UNCLEAR;
}

/* Of the families of the internet, one that no kernel refuses for another reason than that the right is missing. */
enum probe_result probe_socket(const struct probe *p)
{
	const int protocol = p->number == AF_INET || p->number == AF_INET6 ? IPPROTO_RAW : 0;
	return syscall(SYS_socket, p->number, p->more, protocol) >= 0 ? PROBE_WORKS : probe_refused(p);
}

/* A container may have such a socket (gVisor gives one to everybody): then what counts is whom it reaches. */
enum probe_result probe_ping(const struct probe *p)
{
	static const char echo[8] = {8};
	union address a;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (fd < 0)
		return probe_refused(p);
	if (probes_room.network != PROBES_APART)
		return PROBE_WORKS;
	socklen_t len = make_address(&a, p->text, 0);
	return sendto(fd, echo, sizeof(echo), 0, &a.any, len) >= 0 ? PROBE_WORKS : probe_unanswered();
}

enum probe_result probe_page(const struct probe *p)
{
	char request[256], answer[8192];
	snprintf(request, sizeof(request), "GET %s%s HTTP/1.1\r\nHost: cage.internal\r\n\r\n",
		 p->number == 80 ? "" : "http://cage.internal", p->text);
	exchange(open_to(p->number == 80 ? "192.0.2.1" : probes_room.helpers, p->number, SOCK_STREAM), request, answer,
		 sizeof(answer));
	return strncmp(answer, "HTTP/1.1 200", 12) == 0 ? PROBE_WORKS : PROBE_FAILS;
}

enum probe_result probe_own(const struct probe *p)
{
	union address a;
	(void)p;
	socklen_t len = make_address(&a, "127.0.0.1", 0);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server < 0 || bind(server, &a.any, len) != 0 || listen(server, 1) != 0 ||
	    getsockname(server, &a.any, &len) != 0)
		return PROBE_FAILS;
	return open_to("127.0.0.1", ntohs(a.v4.sin_port), SOCK_STREAM) >= 0 && accept(server, NULL, NULL) >= 0
		       ? PROBE_WORKS
		       : PROBE_FAILS;
}

/* name: "/path" or "@abstract". By connecting, since no socket can be opened. */
static enum probe_result connect_unix(const struct probe *p, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strnlen(name, sizeof(a.sun_path));
	memcpy(a.sun_path, name, len);
	if (name[0] == '@')
		a.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, size) == 0 ? PROBE_WORKS : probe_refused(p);
}

enum probe_result probe_path(const struct probe *p)
{
	return connect_unix(p, p->text);
}

/* "127.0.0.1:4711" */
static enum probe_result connect_inet(const struct probe *p, const char *name, int type)
{
	char address[64], answer[16];
	const char *colon = strrchr(name, ':');
	if (!colon)
		return PROBE_UNCLEAR;
	snprintf(address, sizeof(address), "%.*s", (int)(colon - name), name);
	int fd = open_to(address, strtol(colon + 1, NULL, 10), type);
	if (fd < 0 || (type == SOCK_DGRAM && exchange(fd, "cage", answer, sizeof(answer)) < 0))
		return probe_refused(p);
	return PROBE_WORKS;
}

/* All can read it: who may not, is kept from it by the room that shares it. */
static enum probe_result open_bait(const struct probe *p, const char *name)
{
	if (open(name, O_RDONLY | O_CLOEXEC) >= 0)
		return PROBE_WORKS;
	return errno == EACCES ? PROBE_FAILS : probe_refused(p);
}

enum probe_result probe_bait(const struct probe *p)
{
	const char *name = probes_room.baits[p->number];
	switch ((enum bait)p->number) {
	case BAIT_TCP:
	case BAIT_TCP_OTHER:
		return connect_inet(p, name, SOCK_STREAM);
	case BAIT_UDP:
	case BAIT_UDP_OTHER:
		return connect_inet(p, name, SOCK_DGRAM);
	case BAIT_PATH:
	case BAIT_ABSTRACT:
		return connect_unix(p, name);
	case BAIT_FILE:
		return open_bait(p, name);
	case BAITS:
		break;
	}
	return PROBE_UNCLEAR;
}
