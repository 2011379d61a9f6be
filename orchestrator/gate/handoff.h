/* How the gate gives its listening sockets to the launcher: one message of a SOCK_SEQPACKET socket for each, a header of
 * eight bytes and the descriptor as SCM_RIGHTS; HANDOFF_END, without a descriptor, says that there are no more. The
 * launcher answers one byte, HANDOFF_GO, when cage-proxy and cage-dns serve them. The gate keeps a copy of each, so that
 * a port is never free. In a network of its own, a launcher whose proxy has died shuts its copies down (shutdown,
 * SHUT_RDWR): connections are then refused and not left waiting. The same machine is on both sides, so the numbers are
 * in its own byte order. */
#ifndef CAGE_GATE_HANDOFF_H
#define CAGE_GATE_HANDOFF_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define HANDOFF_MAGIC 0x65676163u /* "cage" */
#define HANDOFF_VERSION 1
#define HANDOFF_GO 'g'
#define HANDOFF_NO_GO 'n'      /* instead of it: nothing is to be run, and that was said already */
#define HANDOFF_END_NOW SIGPWR /* to the gate: end all in the room, and yourself */

enum handoff_kind {
	HANDOFF_END,
	HANDOFF_PROXY,    /* TCP: cage-proxy --listen */
	HANDOFF_CAPTURED, /* TCP: cage-proxy --transparent; its address is where the client wanted to go */
	HANDOFF_DNS_UDP,  /* cage-dns --listen */
	HANDOFF_DNS_TCP,
	HANDOFF_WATCH, /* AF_PACKET: attempts to reach what nobody listens for; cage-proxy --watch */
	/* Later, without a descriptor: */
	HANDOFF_BEGINS,  /* CMD has the terminal, and waits for HANDOFF_GO; only where there is one */
	HANDOFF_STOPPED, /* CMD was stopped by a signal; SIGCONT to the gate lets it go on */
	HANDOFF_USAGE    /* last of all: struct handoff_usage follows the header */
};

struct handoff_header {
	uint32_t magic;
	uint16_t version;
	uint16_t kind; /* enum handoff_kind */
};

/* What all in the room have used. */
struct handoff_usage {
	uint64_t cpu_us, memory_peak; /* bytes */
	uint64_t killed, refused;     /* processes that were killed for memory, and new ones that were refused */
};

/* Sends one descriptor, or none with fd -1. 0, or -1 with errno. Also what the supervised child gives its notifier
 * to the supervisor with. */
int handoff_send(int socket, enum handoff_kind kind, int fd);

void handoff_send_usage(int socket, const struct handoff_usage *usage);

/* Receives one message: its kind, and its descriptor or -1. 0, or -1 when the other end is gone or speaks something
 * else. */
int handoff_receive(int socket, enum handoff_kind *kind, int *fd);

/* The same where HANDOFF_USAGE may come, and without waiting. */
int handoff_receive_news(int socket, enum handoff_kind *kind, int *fd, struct handoff_usage *usage);

/* Waits for HANDOFF_GO. 0, or -1 when the other end went away, with errno ECANCELED if it has said HANDOFF_NO_GO. */
int handoff_await_go(int socket);

#endif
