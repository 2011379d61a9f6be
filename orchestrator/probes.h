/* What cage verify tries from inside a room. Each probe runs in a process of its own, which may hang or be killed. */
#ifndef CAGE_ORCHESTRATOR_PROBES_H
#define CAGE_ORCHESTRATOR_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "orchestrator/baits.h"

enum probe_result {
	PROBE_WORKS,
	PROBE_FAILS,  /* as it does where it is refused */
	PROBE_UNCLEAR /* in another way: somebody else may have refused it, or nobody was there */
};

enum probe_expected { MUST_FAIL, MUST_WORK };

struct probe;

typedef enum probe_result probe_run(const struct probe *p);

struct probe {
	enum probe_expected expected;
	const char *name;
	probe_run *run;
	const char *text; /* an address, a path or a request; NULL where there is none */
	long number;      /* a port, or whatever the function takes */
	long more;
	int own, shared; /* the error of a refusal: in a network of the room's own, and in one that is shared; 0: any */
};

#define PROBES_RESULT "%lu probes, %lu surprises%s" /* the last line */
#define PROBES_LEFT_OUT 512                         /* bytes of the names of those that were left out */

extern const struct probe probes[];
extern const size_t n_probes;

enum probes_network {
	PROBES_OWN,    /* all addresses are the room's, where cage captures some ports and refuses the others */
	PROBES_SHARED, /* that of the machine, of which nothing but loopback is left */
	PROBES_APART   /* a container's: there is a way to proxy and dns, and none to anything else */
};

#define PROBES_ADDRESS 16
#define PROBES_LOOPBACK "127.0.0.1"

/* What is known of the room; from the arguments of the one who runs the probes. */
struct probes_room {
	enum probes_network network;
	char helpers[PROBES_ADDRESS]; /* where proxy and dns are */
	bool is_entering;             /* nothing has run yet: only surprises are told */
	bool is_sandbox;              /* of cage serve: others are at work in it, and its image may be any */
	pid_t parent;                 /* of CMD: of the gate */
	const char *const *baits;     /* BAITS names, see baits.h */
};

extern struct probes_room probes_room;

/* Why it can't be tried in this room; NULL: it can. One without a network of its own captures nothing but loopback, and not every
 * bait can be laid. */
const char *probe_left_out(const struct probe *p);

/* All of them, and their results as lines. Only where no probe can do harm if it works. True: none was a surprise.
 * (probes_run.c) */
bool probes_run(void);

/* After a call that gave errno: was that the refusal which is expected? */
enum probe_result probe_refused(const struct probe *p);

/* The same for what is captured in a network of the room's own: it can't be refused there. */
enum probe_result probe_unanswered(void);

/* Has this process no rights, and can it get none? Else probes could do what they only try. (probes_sys.c) */
bool probes_are_confined(void);

/* probes_net.c */
probe_run probe_tcp;    /* a connection to text, number */
probe_run probe_udp;    /* an answer from text, number */
probe_run probe_http;   /* a request for http://text/ on port number of that address, served by anybody but us */
probe_run probe_speak;  /* an answer of a server at text, number to something that is neither TLS nor HTTP */
probe_run probe_proxy;  /* the request `text`, allowed by the proxy */
probe_run probe_socket; /* a socket of family number, type more */
probe_run probe_ping;   /* an ICMP socket */
probe_run probe_page;   /* text of http://cage.internal, by the proxy (number 8080) or straight (80) */
probe_run probe_own;    /* a server and a client of our own on loopback */
probe_run probe_path;   /* the service whose socket is text */
probe_run probe_bait;   /* the bait `number` */

/* probes_dns.c */
probe_run
	probe_dns; /* an address of the name text from the resolver, other than the sinkhole; number: of this type of socket, more: from
			this one */

/* probes_sys.c */
probe_run probe_syscall;   /* the system call `number` with harmless arguments */
probe_run probe_open;      /* text, to be read; number 1: to be written */
probe_run probe_bytes;     /* text, to have something in it */
probe_run probe_locks;     /* text, to show a lock of our own, as it would anybody's */
probe_run probe_device;    /* a block device of our own, in the directory text */
probe_run probe_namespace; /* the namespace text, to be opened; in a container: to be entered */
probe_run probe_disks;     /* a block device */
probe_run probe_make;      /* a file in text or in the variable that text names */
probe_run probe_rights;    /* any capability, or the ability to get one */
probe_run probe_others;    /* a process that is not ours, to be traced */
probe_run probe_child;     /* a process of our own */

#endif
