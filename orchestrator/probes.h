/* What cage verify tries from inside a room. Each probe runs in a process of its own, which may hang or be killed. */
#ifndef CAGE_ORCHESTRATOR_PROBES_H
#define CAGE_ORCHESTRATOR_PROBES_H

#include <stdbool.h>
#include <stddef.h>

struct probe;

/* True: what was tried has worked. */
typedef bool probe_run(const struct probe *p);

struct probe {
	const char *name;
	probe_run *run;
	const char *text; /* an address, a path or a request; NULL where there is none */
	long number;      /* a port, or whatever the function takes */
	long more;
};

/* None of these may work ... */
extern const struct probe probes_denied[];
extern const size_t n_probes_denied;

/* ... and all of these must. */
extern const struct probe probes_allowed[];
extern const size_t n_probes_allowed;

/* Has this process no rights, and can it get none? Else probes could do what they only try. (probes_sys.c) */
bool probes_are_confined(void);

/* probes_net.c */

/* Does it count in this room? One without a network of its own captures nothing but loopback. */
bool probe_applies(const struct probe *p);

probe_run probe_tcp;      /* a connection to text, number */
probe_run probe_udp;      /* an answer from text, number */
probe_run probe_http;     /* a request for http://text/ on port number of that address, served by anybody but us */
probe_run probe_speak;    /* an answer of a server at text, number to something that is neither TLS nor HTTP */
probe_run probe_proxy;    /* the request `text`, allowed by the proxy */
probe_run probe_socket;   /* a socket of family number, type more */
probe_run probe_ping;     /* an ICMP socket */
probe_run probe_dns;      /* an address of the name text from the resolver 127.0.0.1, other than the sinkhole */
probe_run probe_page;     /* text of http://cage.internal, by the proxy (number 8080) or straight (80) */
probe_run probe_own;      /* a server and a client of our own on loopback */
probe_run probe_abstract; /* an abstract unix socket of somebody else */

/* probes_sys.c */
probe_run probe_syscall; /* the system call `number` with harmless arguments; more: which set of them */
probe_run probe_open;    /* text, to be read; number 1: to be written */
probe_run probe_make;    /* a file in text or in the variable that text names */
probe_run probe_rights;  /* any capability, or the ability to get one */
probe_run probe_others;  /* a process that is not ours, to be traced, read or killed */
probe_run probe_child;   /* a process of our own */

#endif
