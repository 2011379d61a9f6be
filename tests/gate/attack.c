/* Runs each attack and prints "NAME PORT shut|open|sent". Each has a process of its own, so that what it breaks is broken
 * for it alone, and an end, so that one that hangs is no way to stop the others.
 *
 * usage: attack PEER PEER6 DEVICE-INDEX OWN-ADDRESS all|send|storm|files|NAME   (send: those that the peer is to judge) */
#include "tests/gate/attack.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_PORT = 20000, SECONDS = 20 };

struct sockaddr_in to_peer(const struct target *t)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(t->port), .sin_addr = t->peer};
}

struct sockaddr_in6 to_peer6(const struct target *t)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(t->port), .sin6_addr = t->peer6};
}

struct sockaddr_in6 to_mapped(const struct target *t)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(t->port)};
	address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&address.sin6_addr.s6_addr[12], &t->peer, sizeof(t->peer));
	return address;
}

/* The first packet goes out within connect, so nothing is waited for. */
enum verdict try_connect(int fd, const void *address, size_t len)
{
	if (fd < 0)
		return SHUT;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)connect(fd, address, (socklen_t)len);
	close(fd);
	return SENT;
}

enum verdict try_connect4(int fd, const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	return try_connect(fd, &peer, sizeof(peer));
}

void disconnect(int fd)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	(void)connect(fd, &nobody, sizeof(nobody));
}

static enum verdict run_apart(const struct attack *attack, const struct target *target)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		alarm(SECONDS);
		_exit((int)attack->run(target));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return OPEN; /* not to be known is not to be safe */
	if (WIFSIGNALED(status))
		return SHUT;
	return (enum verdict)WEXITSTATUS(status);
}

static void run_all(const struct attack *table, struct target *target, const char *which)
{
	static const char *const words[] = {"shut", "open", "sent"};
	const char *kind = table == storm_attacks   ? "storm"
			   : table == other_attacks ? "other"
			   : table == file_attacks  ? "files"
						    : "send";
	for (; table->name; table++) {
		target->port++;
		if (strcmp(which, "all") != 0 && strcmp(which, table->name) != 0 && strcmp(which, kind) != 0)
			continue;
		printf("%s %u %s\n", table->name, target->port, words[run_apart(table, target)]);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct target target = {.port = FIRST_PORT};
	if (argc != 6 || inet_pton(AF_INET, argv[1], &target.peer) != 1 ||
	    inet_pton(AF_INET6, argv[2], &target.peer6) != 1 || inet_pton(AF_INET, argv[4], &target.own) != 1)
		return 2;
	target.device = (int)strtol(argv[3], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_all(tcp_attacks, &target, argv[5]);
	run_all(udp_attacks, &target, argv[5]);
	run_all(other_attacks, &target, argv[5]);
	run_all(storm_attacks, &target, argv[5]);
	run_all(file_attacks, &target, argv[5]);
	return 0;
}
