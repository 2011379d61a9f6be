/* Ways out of the room, each tried by a program inside it. */
#ifndef CAGE_TESTS_GATE_ATTACK_H
#define CAGE_TESTS_GATE_ATTACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* SHUT: refused here. OPEN: something worked that must not. SENT: bytes were given to the kernel, or it may have sent some of
 * its own accord; whether they got anywhere is seen by the peer. */
enum verdict { SHUT, OPEN, SENT };

struct target {
	struct in_addr peer, own; /* in the network beside the room: the peer, and the address that leads there */
	struct in6_addr peer6;
	int device;     /* index of the device that leads there */
	in_port_t port; /* another one for each attack, so that the peer sees which one arrived */
};

struct attack {
	const char *name;
	enum verdict (*run)(const struct target *);
};

extern const struct attack tcp_attacks[], udp_attacks[], other_attacks[], storm_attacks[],
	file_attacks[]; /* each ends with a name of NULL */

/* Helpers. */
struct sockaddr_in to_peer(const struct target *t);
struct sockaddr_in6 to_peer6(const struct target *t);
struct sockaddr_in6 to_mapped(const struct target *t);
enum verdict try_connect(int fd, const void *address, size_t len); /* closes fd */
enum verdict try_connect4(int fd, const struct target *t);
void disconnect(int fd);

#endif
