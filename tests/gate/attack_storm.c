/* Too much, too fast, and nonsense, against whoever answers for sockets in a shared network: afterwards it must still
 * answer, and never have answered with anything but a socket on loopback. */
#include "tests/gate/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TO_IFINDEX = 62, VICTIMS = 100, INTERRUPTED = 2000, CALLS = 20000, FEW = 16, INTERVAL_US = 200, TABLE = 1024 };

static int option_of(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static bool is_harmless(int fd)
{
	const int family = option_of(fd, SO_DOMAIN), type = option_of(fd, SO_TYPE);
	if (family == AF_UNIX)
		return true;
	if (family == AF_NETLINK)
		return option_of(fd, SO_PROTOCOL) == NETLINK_ROUTE;
	if (family != AF_INET || option_of(fd, TO_IFINDEX) != 1)
		return false;
	return (type == SOCK_STREAM && option_of(fd, SO_PROTOCOL) == IPPROTO_TCP) ||
	       (type == SOCK_DGRAM && option_of(fd, SO_PROTOCOL) == IPPROTO_UDP);
}

static enum verdict still_served(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	enum verdict verdict = fd >= 0 && is_harmless(fd) ? SHUT : OPEN;
	close(fd);
	return verdict;
}

static int count_descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < TABLE; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each dies while it asks, somewhere between the question and the answer. */
static enum verdict killed(const struct target *t)
{
	(void)t;
	for (int i = 0; i < VICTIMS; i++) {
		int ends[2];
		char byte;
		if (pipe(ends) < 0)
			return OPEN;
		pid_t child = fork();
		if (child == 0) {
			for (int n = 0; n < 1 << 20; n++) {
				close(socket(AF_INET, SOCK_STREAM, 0));
				if (n == i && write(ends[1], "x", 1) != 1)
					break;
			}
			_exit(0);
		}
		if (child < 0 || read(ends[0], &byte, 1) != 1)
			return OPEN;
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(ends[0]);
		close(ends[1]);
	}
	return still_served();
}

static void nothing(int number)
{
	(void)number;
}

/* Calls that are interrupted all the time: no descriptor may be left behind that nobody knows of. */
static enum verdict interrupted(const struct target *t)
{
	const struct sigaction action = {.sa_handler = nothing};
	const struct itimerval often = {{0, INTERVAL_US}, {0, INTERVAL_US}}, never = {{0, 0}, {0, 0}};
	const int before = count_descriptors();
	enum verdict verdict = SHUT;
	(void)t;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < INTERRUPTED; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 ? errno != EINTR : !is_harmless(fd))
			verdict = OPEN;
		if (fd >= 0)
			close(fd);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	return verdict == SHUT && count_descriptors() == before ? still_served() : OPEN;
}

static enum verdict full(const struct target *t)
{
	const struct rlimit few = {FEW, FEW};
	int last = -1;
	(void)t;
	setrlimit(RLIMIT_NOFILE, &few);
	for (int i = 0; i <= FEW; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0)
			break;
		last = fd;
	}
	if (last < 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EMFILE)
		return OPEN;
	close(last);
	return still_served();
}

/* The same numbers each time. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Mostly of the family that is answered for, since all others end in the kernel. */
static enum verdict nonsense(const struct target *t)
{
	uint64_t state = 0x9e3779b97f4a7c15;
	(void)t;
	for (int i = 0; i < CALLS; i++) {
		const uint64_t r = next(&state), upper = next(&state) << 32;
		const uint64_t family = r & 3 ? AF_INET : r >> 8 & 63;
		const uint64_t type = r & 4 ? r >> 16 & 0x80fff : next(&state);
		const uint64_t protocol = r & 8 ? r >> 40 & 511 : next(&state);
		int fd = (int)syscall(SYS_socket, r & 16 ? family | upper : family, type, protocol);
		if (fd >= 0 && !is_harmless(fd))
			return OPEN;
		if (fd >= 0)
			close(fd);
	}
	return still_served();
}

const struct attack storm_attacks[] = {
	{"storm_killed", killed},
	{"storm_interrupted", interrupted},
	{"storm_full", full},
	{"storm_nonsense", nonsense},
	{NULL, NULL},
};
