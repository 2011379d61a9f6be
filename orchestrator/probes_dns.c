/* A question for a name, as it goes over the wire: the resolver of libc needs files of its own, which not every image has. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/probes.h"

#define HEADER 12
#define SINKHOLE 0xc0000201 /* 192.0.2.1 */

/* For an address of IPv4. Its length. */
static size_t make_question(const char *name, unsigned char out[512])
{
	static const unsigned char header[HEADER] = {0xca, 0x9e, 1, 0, 0, 1}, address[4] = {0, 1, 0, 1};
	size_t n = HEADER;
	memcpy(out, header, HEADER);
	while (*name && n < 256) {
		size_t len = strcspn(name, ".");
		out[n++] = (unsigned char)len;
		memcpy(out + n, name, len);
		n += len;
		name += len + (name[len] == '.');
	}
	out[n++] = 0;
	memcpy(out + n, address, sizeof(address));
	return n + sizeof(address);
}

/* Over TCP, a question has its length before it, and so has an answer. */
static ssize_t ask_stream(int fd, const unsigned char *question, size_t len, unsigned char answer[512])
{
	unsigned char framed[2 + 512] = {(unsigned char)(len >> 8), (unsigned char)len};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	memcpy(framed + 2, question, len);
	if (send(fd, framed, len + 2, MSG_NOSIGNAL) != (ssize_t)len + 2 || poll(&p, 1, LIMIT_PROBE_MS) <= 0)
		return -1;
	ssize_t n = recv(fd, framed, sizeof(framed), 0) - 2;
	if (n > 0)
		memcpy(answer, framed + 2, (size_t)n);
	return n;
}

static ssize_t ask_datagram(int fd, const unsigned char *question, size_t len, unsigned char answer[512])
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return send(fd, question, len, MSG_NOSIGNAL) == (ssize_t)len && poll(&p, 1, LIMIT_PROBE_MS) > 0
		       ? recv(fd, answer, 512, 0)
		       : -1;
}

/* The bytes of an answer; -1: nobody has given one. */
static ssize_t ask(const struct probe *p, const unsigned char *question, size_t len, unsigned char answer[512])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
	at.sin_addr.s_addr = htonl((uint32_t)p->more);
	if (p->more == 0)
		inet_pton(AF_INET, probes_room.helpers, &at.sin_addr);
	int fd = socket(AF_INET, (int)p->number | SOCK_CLOEXEC, 0);
	ssize_t n = -1;
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		n = (p->number == SOCK_STREAM ? ask_stream : ask_datagram)(fd, question, len, answer);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Where the network is shared, nobody answers, and a container has no way to others. The address of the only answer is its end. */
enum probe_result probe_dns(const struct probe *p)
{
	unsigned char question[512], answer[512] = {0};
	uint32_t address;
	size_t len = make_question(p->text, question);
	ssize_t n = ask(p, question, len, answer);
	const bool may_be_silent =
		probes_room.network == PROBES_SHARED || (probes_room.network == PROBES_APART && p->more != 0);
	bool has_answer = n >= (ssize_t)(len + sizeof(address)) && memcmp(answer, question, 2) == 0 &&
			  (answer[6] | answer[7]) != 0;
	if (!has_answer)
		return may_be_silent ? PROBE_FAILS : PROBE_UNCLEAR;
	memcpy(&address, answer + n - sizeof(address), sizeof(address));
	return address == htonl(SINKHOLE) ? PROBE_FAILS : PROBE_WORKS;
}
