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

/* The bytes of an answer; -1: nobody has given one. */
static ssize_t ask(const unsigned char *question, size_t len, unsigned char answer[512])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
	inet_pton(AF_INET, probes_room.helpers, &at.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n = -1;
	if (fd >= 0 && sendto(fd, question, len, MSG_NOSIGNAL, (struct sockaddr *)&at, sizeof(at)) == (ssize_t)len &&
	    poll(&p, 1, LIMIT_PROBE_MS) > 0)
		n = recv(fd, answer, 512, 0);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Where the network is shared, nobody answers. The address of the only answer is its end. */
enum probe_result probe_dns(const struct probe *p)
{
	unsigned char question[512], answer[512] = {0};
	uint32_t address;
	size_t len = make_question(p->text, question);
	ssize_t n = ask(question, len, answer);
	bool has_answer = n >= (ssize_t)(len + sizeof(address)) && memcmp(answer, question, 2) == 0 &&
			  (answer[6] | answer[7]) != 0;
	if (!has_answer)
		return probes_room.network == PROBES_SHARED ? PROBE_FAILS : PROBE_UNCLEAR;
	memcpy(&address, answer + n - sizeof(address), sizeof(address));
	return address == htonl(SINKHOLE) ? PROBE_FAILS : PROBE_WORKS;
}
