/* Probes of the network. What is captured does connect, to the proxy: there it counts what is answered. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
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

/* A connected socket, or -1; the process's alarm ends what hangs. */
static int open_to(const char *text, long port, int type)
{
	union address a;
	socklen_t len = make_address(&a, text, port);
	int fd = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, &a.any, len) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* What comes back, up to the end or the room's; 0: nothing. */
static size_t exchange(int fd, const char *said, char *out, size_t room)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	if (fd < 0 || send(fd, said, strlen(said), MSG_NOSIGNAL) < 0)
		return 0;
	while (len < room - 1 && poll(&p, 1, LIMIT_PROBE_MS) > 0) {
		ssize_t n = recv(fd, out + len, room - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}

static bool is_ours(const char *answer)
{
	return strstr(answer, "blocked_by_cage") != NULL;
}

bool probe_tcp(const struct probe *p)
{
	return open_to(p->text, p->number, SOCK_STREAM) >= 0;
}

bool probe_udp(const struct probe *p)
{
	char answer[512];
	return exchange(open_to(p->text, p->number, SOCK_DGRAM), "cage", answer, sizeof(answer)) > 0;
}

bool probe_http(const struct probe *p)
{
	char request[256], answer[4096];
	bool is_v6 = strchr(p->text, ':') != NULL;
	snprintf(request, sizeof(request),
		 "GET /metadata/instance HTTP/1.1\r\nHost: %s%s%s\r\nMetadata: true\r\nConnection: close\r\n\r\n",
		 is_v6 ? "[" : "", p->text, is_v6 ? "]" : "");
	size_t n = exchange(open_to(p->text, p->number, SOCK_STREAM), request, answer, sizeof(answer));
	return n > 0 && !is_ours(answer);
}

bool probe_speak(const struct probe *p)
{
	char answer[4096];
	size_t n = exchange(open_to(p->text, p->number, SOCK_STREAM), "SSH-2.0-cage\r\n\r\n", answer, sizeof(answer));
	return n > 0 && !is_ours(answer);
}

bool probe_proxy(const struct probe *p)
{
	char request[256], answer[4096];
	snprintf(request, sizeof(request), "%s HTTP/1.1\r\nConnection: close\r\n\r\n", p->text);
	size_t n = exchange(open_to("127.0.0.1", 8080, SOCK_STREAM), request, answer, sizeof(answer));
	return n > 0 && !is_ours(answer);
}

bool probe_socket(const struct probe *p)
{
	return syscall(SYS_socket, p->number, p->more, 0) >= 0;
}

bool probe_ping(const struct probe *p)
{
	(void)p;
	return socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) >= 0;
}

bool probe_dns(const struct probe *p)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
	if (getaddrinfo(p->text, NULL, &hints, &found) != 0)
		return false;
	const struct sockaddr_in *in = (const void *)found->ai_addr;
	bool is_sinkhole = in->sin_addr.s_addr == htonl(0xc0000201); /* 192.0.2.1 */
	freeaddrinfo(found);
	return !is_sinkhole;
}

bool probe_page(const struct probe *p)
{
	char request[256], answer[8192];
	snprintf(request, sizeof(request), "GET %s%s HTTP/1.1\r\nHost: cage.internal\r\n\r\n",
		 p->number == 80 ? "" : "http://cage.internal", p->text);
	size_t n = exchange(open_to(p->number == 80 ? "192.0.2.1" : "127.0.0.1", p->number, SOCK_STREAM), request,
			    answer, sizeof(answer));
	return n > 0 && strncmp(answer, "HTTP/1.1 200", 12) == 0;
}

/* A datagram socket that is connected sends nothing, and shows the address that it would send from. */
static bool foreign_is_local(void)
{
	union address there, here = {0};
	socklen_t len = make_address(&there, "192.0.2.1", 9);
	int fd = open_to("192.0.2.1", 9, SOCK_DGRAM);
	return fd >= 0 && getsockname(fd, &here.any, &len) == 0 && here.v4.sin_addr.s_addr == there.v4.sin_addr.s_addr;
}

bool probe_applies(const struct probe *p)
{
	return p->run != probe_page || p->number != 80 || foreign_is_local();
}

bool probe_own(const struct probe *p)
{
	union address a;
	(void)p;
	socklen_t len = make_address(&a, "127.0.0.1", 0);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server < 0 || bind(server, &a.any, len) != 0 || listen(server, 1) != 0 ||
	    getsockname(server, &a.any, &len) != 0)
		return false;
	return open_to("127.0.0.1", ntohs(a.v4.sin_port), SOCK_STREAM) >= 0 && accept(server, NULL, NULL) >= 0;
}

bool probe_abstract(const struct probe *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strlen(p->text);
	memcpy(a.sun_path + 1, p->text, len);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd >= 0 &&
	       connect(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) == 0;
}
