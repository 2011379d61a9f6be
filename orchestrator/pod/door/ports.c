/* What answers. The helpers have to. Whoever else has an address in the agent's network answers at once, be it with a refusal, since
 * all of them are on this machine; and what is not in it must be out of reach for the kernel already. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/pod/door/door.h"

enum answer { ANSWER_NONE, ANSWER_YES, ANSWER_REFUSED, ANSWER_NO_WAY };

static enum answer answer_of(int error)
{
	switch (error) {
	case 0:
		return ANSWER_YES;
	case ENETUNREACH:
		return ANSWER_NO_WAY;
	case EINPROGRESS:
	case EHOSTUNREACH:
		return ANSWER_NONE;
	default:
		return ANSWER_REFUSED;
	}
}

/* Before anything was sent, this is what gVisor says where there is no route. */
static enum answer answer_at_once(int error)
{
	return error == EHOSTUNREACH ? ANSWER_NO_WAY : answer_of(error);
}

static int begin(struct in_addr to, uint16_t port, enum answer *out)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = to};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		*out = ANSWER_REFUSED;
		return -1;
	}
	*out = answer_at_once(connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 ? 0 : errno);
	return fd;
}

static enum answer await(int fd, enum answer so_far, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);
	if (so_far != ANSWER_NONE || fd < 0 || poll(&p, 1, ms) <= 0)
		return so_far;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? answer_of(error) : ANSWER_REFUSED;
}

static enum answer ask(struct in_addr to, uint16_t port, int ms)
{
	enum answer answer;
	int fd = begin(to, port, &answer);
	answer = await(fd, answer, ms);
	if (fd >= 0)
		close(fd);
	return answer;
}

static bool helpers_answer(const struct door_network *n)
{
	static const uint16_t ports[] = {8080, 53};
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		if (ask(n->helpers, ports[i], LIMIT_DOOR_HELPER_MS) != ANSWER_YES) {
			say("nobody answers on port %d of the proxy", ports[i]);
			return false;
		}
	return true;
}

/* All other places of the network at the same time: silence is what is hoped for. */
static bool neighbours_are_silent(const struct door_network *n)
{
	static const uint16_t ports[] = {22, 53, 80, 443};
	const uint32_t places = ~ntohl(n->mask.s_addr);
	int fds[LIMIT_DOOR_PLACES * 4];
	enum answer answers[LIMIT_DOOR_PLACES * 4];
	size_t all = 0;
	bool ok = places <= LIMIT_DOOR_PLACES;
	for (uint32_t i = 1; ok && i < places; i++) {
		struct in_addr to = {htonl(ntohl(n->own.s_addr & n->mask.s_addr) + i)};
		if (to.s_addr == n->own.s_addr || to.s_addr == n->helpers.s_addr)
			continue;
		for (size_t p = 0; p < 4; p++, all++)
			fds[all] = begin(to, ports[p], &answers[all]);
	}
	for (size_t i = 0; i < all; i++) {
		ok = await(fds[i], answers[i], i == 0 ? LIMIT_DOOR_SILENCE_MS : 0) == ANSWER_NONE && ok;
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (!ok)
		say("somebody else answers in the agent's network");
	return ok;
}

/* Addresses of the world, and those where clouds and containers have their machine. */
static bool world_is_out_of_reach(void)
{
	static const char *const places[] = {"1.1.1.1",   "8.8.8.8",    "169.254.169.254",
					     "10.88.0.1", "172.17.0.1", "192.168.0.1"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct in_addr to;
		if (inet_pton(AF_INET, places[i], &to) == 1 && ask(to, 443, 0) == ANSWER_NO_WAY)
			continue;
		say("there is a way to %s from the agent's network", places[i]);
		return false;
	}
	return true;
}

bool door_reaches_only_helpers(const struct door_network *n)
{
	return world_is_out_of_reach() && neighbours_are_silent(n) && helpers_answer(n);
}
