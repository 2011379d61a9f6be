/* Laying baits, and seeing who bites. */
#include "orchestrator/baits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/say.h"

#define LANDLOCK_OF_TCP 4      /* version of Landlock that knows ports, ... */
#define LANDLOCK_OF_ABSTRACT 6 /* ... and abstract names */

const char *bait_describe(enum bait bait)
{
	static const char *const texts[BAITS] = {"TCP to a listener on this machine",
						 "TCP to a listener on its address",
						 "UDP to a socket of this machine",
						 "UDP to a socket on its address",
						 "a service of this machine, by its path",
						 "a service of this machine, by an abstract name",
						 "a file of this machine"};
	return texts[bait];
}

/* ---- one of them ---- */

static int open_inet(char name[BAIT_NAME], struct in_addr address, int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = address};
	socklen_t len = sizeof(a);
	char text[INET_ADDRSTRLEN];
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) != 0 || (type == SOCK_STREAM && listen(fd, 8) != 0) ||
	    getsockname(fd, (struct sockaddr *)&a, &len) != 0 || !inet_ntop(AF_INET, &a.sin_addr, text, sizeof(text))) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	snprintf(name, BAIT_NAME, "%s:%u", text, ntohs(a.sin_port));
	return fd;
}

/* name: with its first byte 0 if it is abstract, of len bytes. */
static int open_unix(const char *name, size_t len)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (len > sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path, name, len);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 &&
	    bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0 &&
	    listen(fd, 8) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Nobody else can have a name that nobody knows. */
static int open_abstract(char name[BAIT_NAME])
{
	unsigned long long random = 0;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -1;
	snprintf(name, BAIT_NAME, "%ccage-verify-%016llx", 0, random);
	int fd = open_unix(name, 1 + strlen(name + 1));
	name[0] = '@';
	return fd;
}

static int open_file(char name[BAIT_NAME], const char *dir)
{
	snprintf(name, BAIT_NAME, "%s/file", dir);
	if (!dir[0])
		return -1;
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) == 0) /* whatever the umask is */
		return fd;
	close(fd);
	return -1;
}

static int open_path(char name[BAIT_NAME], const char *dir)
{
	snprintf(name, BAIT_NAME, "%s/socket", dir);
	int fd = open_unix(name, strlen(name));
	if (fd < 0 || chmod(name, 0777) == 0)
		return fd;
	close(fd);
	return -1;
}

/* An address of this machine that others can reach it at. */
static bool find_address(struct in_addr *out)
{
	struct ifaddrs *all = NULL;
	bool found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_flags & IFF_LOOPBACK))
			continue;
		*out = ((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
		found = true;
	}
	freeifaddrs(all);
	return found;
}

/* ---- all of them ---- */

#define BESIDE "the gate makes no room here beside one that can be reached"

static bool shares_files(const struct room_kind *kind)
{
	return kind->files == FILES_SHARED;
}

/* Why one is not laid; NULL: it is. A bait that makes the gate refuse the room would be of no use. */
static const char *why_not(enum bait bait, const struct room_kind *kind)
{
	const bool shares_net = strcmp(kind->mode, "seccomp") == 0;
	const long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	switch (bait) {
	case BAIT_TCP:
	case BAIT_TCP_OTHER:
		return shares_net && landlock < LANDLOCK_OF_TCP ? BESIDE : NULL;
	case BAIT_ABSTRACT:
		return shares_net && landlock < LANDLOCK_OF_ABSTRACT ? BESIDE : NULL;
	case BAIT_PATH:
		return shares_files(kind) ? BESIDE : NULL;
	case BAIT_FILE:
		return shares_files(kind) && landlock < 1 ? "the room shares the files that all can read" : NULL;
	case BAIT_UDP:
	case BAIT_UDP_OTHER:
	case BAITS:
		break;
	}
	return NULL;
}

/* Why one may be missing though it was tried; NULL: it may not. */
static const char *why_missing(enum bait bait, const struct room_kind *kind)
{
	if (bait == BAIT_TCP_OTHER || bait == BAIT_UDP_OTHER)
		return "this machine has no other address";
	return bait == BAIT_FILE && shares_files(kind) ? "no file can be made in /run for all to read" : NULL;
}

/* What is in /tmp the room may read where it shares the files of this machine, so that it is no way out. */
static const char *open_apart(struct baits *b)
{
	struct stat st;
	snprintf(b->apart, sizeof(b->apart), "/run/cage-verify.XXXXXX");
	if (stat("/run", &st) == 0 && (st.st_mode & S_IXOTH) && mkdtemp(b->apart) && chmod(b->apart, 0711) == 0)
		return b->apart;
	b->apart[0] = '\0';
	return "";
}

static int lay(struct baits *b, enum bait bait, const char *dir)
{
	struct in_addr address = {.s_addr = htonl(INADDR_LOOPBACK)};
	char *name = b->names[bait];
	switch (bait) {
	case BAIT_TCP_OTHER:
	case BAIT_UDP_OTHER:
		if (!find_address(&address))
			return -1;
		return open_inet(name, address, bait == BAIT_TCP_OTHER ? SOCK_STREAM : SOCK_DGRAM);
	case BAIT_TCP:
		return open_inet(name, address, SOCK_STREAM);
	case BAIT_UDP:
		return open_inet(name, address, SOCK_DGRAM);
	case BAIT_PATH:
		return open_path(name, dir);
	case BAIT_ABSTRACT:
		return open_abstract(name);
	case BAIT_FILE:
		return open_file(name, dir);
	case BAITS:
		break;
	}
	return -1;
}

bool baits_lay(struct baits *b, const char *dir, const struct room_kind *kind)
{
	*b = (struct baits){.is_bitten = {false}};
	for (int i = 0; i < BAITS; i++)
		b->fds[i] = -1;
	for (int i = 0; i < BAITS; i++) {
		const char *reason = why_not((enum bait)i, kind);
		if (!reason) {
			const bool apart = i == BAIT_FILE && shares_files(kind);
			b->fds[i] = lay(b, (enum bait)i, apart ? open_apart(b) : dir);
			reason = why_missing((enum bait)i, kind);
		}
		if (b->fds[i] >= 0)
			continue;
		if (!reason) {
			say("verify: %s: %s", bait_describe((enum bait)i), strerror(errno));
			return false;
		}
		snprintf(b->names[i], BAIT_NAME, "%c%s", BAIT_NONE, reason);
	}
	return true;
}

void baits_watch(const struct baits *b, struct pollfd p[BAITS])
{
	for (int i = 0; i < BAITS; i++)
		p[i] = (struct pollfd){.fd = i == BAIT_FILE ? -1 : b->fds[i], .events = POLLIN};
}

/* A connection or a datagram. Taken, so that poll() waits for the next. */
void baits_look(struct baits *b, const struct pollfd p[BAITS])
{
	char bytes[16];
	for (int i = 0; i < BAITS; i++) {
		if (p[i].fd < 0 || !p[i].revents)
			continue;
		b->is_bitten[i] = true;
		int fd = accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
		else
			recv(p[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	}
}

void baits_remove(struct baits *b)
{
	for (int i = 0; i < BAITS; i++)
		if (b->fds[i] >= 0)
			close(b->fds[i]);
	if (b->names[BAIT_PATH][0] == '/')
		unlink(b->names[BAIT_PATH]);
	if (b->names[BAIT_FILE][0] == '/')
		unlink(b->names[BAIT_FILE]);
	if (b->apart[0])
		rmdir(b->apart);
}
