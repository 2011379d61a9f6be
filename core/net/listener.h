/* Listening sockets: opened by the master, accepted from by the workers. */
#ifndef CAGE_NET_LISTENER_H
#define CAGE_NET_LISTENER_H

#include "core/net/loop.h"
#include "core/net/vet.h"

enum listen_kind { LISTEN_TCP, LISTEN_UNIX, LISTEN_FD };

struct listen_spec {
	enum listen_kind kind;
	struct addr_port at; /* LISTEN_TCP; port 0 picks a free one */
	char path[108];      /* LISTEN_UNIX */
	int fd;              /* LISTEN_FD */
	bool is_by_link;     /* LISTEN_TCP: heard only by the interface that has the address */
};

/* "127.0.0.1:8080", "[::1]:8080", "link:10.0.0.2:8080", "unix:PATH", "fd:N". false: *why is a static sentence. */
bool listen_spec_parse(const char *text, struct listen_spec *out, const char **why);

/* The same text again, NUL-terminated; cut when room is short. */
void listen_spec_format(const struct listen_spec *spec, char *out, size_t room);

/* An open, listening, non-blocking, close-on-exec socket; -1 with errno. With reuseport several can be opened for one
 * address. LISTEN_FD checks that the descriptor listens. A stale unix socket (nobody answers) is replaced, a live one
 * is EADDRINUSE. Mode 0660. */
int listen_open(const struct listen_spec *spec, bool reuseport);

/* The kernel takes what is sent to an address of its own whichever interface it comes by; with this, a socket that will be bound to it
 * hears of none but the one that has it. Not for addresses that this machine itself connects to: it does so by loopback. False with
 * errno. */
bool listen_by_link(int fd, const struct addr *at);

/* The address a TCP listener is bound to; false for unix sockets. */
bool listen_address(int fd, struct addr_port *out);

struct listener;

/* fd is non-blocking and close-on-exec, TCP_NODELAY on TCP, and the callee's. */
typedef void (*accept_cb)(void *arg, int fd);

/* Accepts at most LIMIT_ACCEPTS_PER_WAKEUP per event; out of descriptors, it rests for 100 ms. Does not own listen_fd.
 */
struct listener *listener_new(struct loop *l, int listen_fd, accept_cb cb, void *arg);

void listener_free(struct listener **l);

#endif
