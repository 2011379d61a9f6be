/* What the agent finds around it besides the network: its files, processes, environment and limits. */
#ifndef CAGE_GATE_ROOM_H
#define CAGE_GATE_ROOM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "orchestrator/gate/cgroup.h"
#include "orchestrator/gate/copy.h"
#include "orchestrator/gate/path_sockets.h"
#include "orchestrator/gate/room_limits.h"

/* Text of --help and rows of the table of options, all of which are given to room_option. */
#define ROOM_HELP                                                                                          \
	"  --uid N            the agent's user and group id (default 1000)\n"                              \
	"  --env NAME=VALUE   into the environment of CMD, which is empty otherwise; --env NAME\n"         \
	"                     takes the value that cage-gate itself has; repeated\n"                       \
	"  --bind SRC[:DST]   a directory or file of this machine that the agent may change, at the\n"     \
	"                     same path or at DST; repeated, as are the next six\n"                        \
	"  --bind-ro SRC[:DST]\n"                                                                          \
	"                     the same, only to be read\n"                                                 \
	"  --replace SRC:DST  the same, but left out where nothing can be mounted\n"                       \
	"  --copy SRC:DST     copies of the files of a directory, which the agent may change; left out\n"  \
	"                     where nothing can be mounted\n"                                              \
	"  --tmpfs DST[:SIZE] an empty directory in memory, of SIZE bytes (K, M, G; default 1G)\n"         \
	"  --overlay DIR:STATE\n"                                                                          \
	"                     DIR as --bind shows it, but changes go to STATE/upper; STATE also has the\n" \
	"                     empty directories work and lower\n"                                          \
	"  --hide PATH        what would be at PATH in the room is not to be seen\n"                       \
	"  --limit NAME=N,... mem=BYTES of all processes together, cpu=N processors, pids=N, files=N\n"    \
	"                     descriptors and fsize=BYTES of a file, time=N (s, m, h) in all\n"            \
	"  --root DIR         the tree to read programs from (default: those of this machine: /usr,\n"     \
	"                     /etc, /opt and their like, no home and no /var)\n"                           \
	"  --workdir DIR      where CMD starts (default: its home, which is HOME of --env or\n"            \
	"                     /home/agent)\n"                                                              \
	"  --hostname NAME    (default cage)\n"
#define ROOM_LONG_OPTIONS(value)                                                                            \
	{"uid", required_argument, NULL, (value)}, {"env", required_argument, NULL, (value)},               \
		{"bind", required_argument, NULL, (value)}, {"bind-ro", required_argument, NULL, (value)},  \
		{"replace", required_argument, NULL, (value)}, {"copy", required_argument, NULL, (value)},  \
		{"tmpfs", required_argument, NULL, (value)}, {"overlay", required_argument, NULL, (value)}, \
		{"hide", required_argument, NULL, (value)}, {"limit", required_argument, NULL, (value)},    \
		{"root", required_argument, NULL, (value)}, {"workdir", required_argument, NULL, (value)},  \
	{                                                                                                   \
		"hostname", required_argument, NULL, (value)                                                \
	}

enum { ROOM_ENV = 256 };

enum fitting_kind {
	FITTING_BIND,
	FITTING_BIND_RO,
	FITTING_REPLACE,
	FITTING_COPY,
	FITTING_OVERLAY,
	FITTING_TMPFS,
	FITTING_HIDE
};

struct fitting {
	enum fitting_kind kind;
	char *source; /* path outside; NULL for those that have none */
	char *path;   /* inside */
	char *state;  /* of an overlay: what changes is kept there */
	size_t size;  /* bytes of a file system in memory */
};

struct room {
	uid_t uid;                     /* user and group id inside; outside too when the gate is run by root */
	uid_t runner;                  /* who runs the gate */
	const char *env[ROOM_ENV + 1]; /* ends with NULL */
	size_t n_env;
	struct fitting fittings[LIMIT_ROOM_FITTINGS];
	size_t n_fittings;
	struct room_limits limits;
	const char *root;     /* NULL: the programs of this machine */
	const char *workdir;  /* NULL: the home */
	const char *hostname; /* NULL: "cage" */
};

/* Whether a place in the room was asked for by name. */
enum bound { BOUND_NOT, BOUND_ABOVE, BOUND_ITSELF };

/* What is got for a room outside of it. */
struct room_supplies {
	int trees[LIMIT_ROOM_FITTINGS];  /* of binds and overlays, where root has opened them; else -1 */
	int states[LIMIT_ROOM_FITTINGS]; /* the same of what an overlay changes */
	struct cgroup cgroup;
	struct path_sockets sockets; /* of others, to be hidden */
	struct copies copies;        /* of the room when it is entered */
};

void room_init(struct room *room);

/* One option by its long name. 0, or -1 after it has said what is wrong. */
int room_option(struct room *room, const char *name, const char *value);

/* The option that asks for it. */
const char *room_fitting_name(enum fitting_kind kind);

/* The home of the agent. */
const char *room_home(const struct room *room);

/* Whether path is bound, or a directory above it. */
enum bound room_bound(const struct room *room, const char *path);

/* The gate, before it forks, with the rights of who runs it. 0, or -1 after it has said why not. */
int room_prepare(const struct room *room, struct room_supplies *out);

/* The same for a container that is the room itself, where nothing is mounted. */
void room_prepare_shared(const struct room *room, struct room_supplies *out);

/* The gate, before the child goes on: the limits that it is held by from outside. 0, or -1 after it has said why not. */
int room_admit(const struct room *room, const struct room_supplies *supplies, pid_t child);

/* Called in the process that becomes the parent of CMD, as root of its user namespace, with the network done.
 * namespaces: those of CLONE_NEWUSER, NEWPID, NEWNS, NEWIPC and NEWUTS that are its own; 0 in mode seccomp, where the
 * container is the room. 0, or the exit code after it has said why not. Privileges are dropped by the caller (users.h,
 * privileges.h), behind it. */
int room_enter(const struct room *room, struct room_supplies *supplies, unsigned namespaces);

/* Called there too, when who started the gate has said go: what it has written until then is copied. 0, or -1 after it has
 * said why not. */
int room_fill(struct room_supplies *supplies);

/* Called last in the child that becomes CMD: what only it may have, such as limits. */
int room_settle(const struct room *room, const struct room_supplies *supplies);

/* The gate, when the room has ended. launcher: who is told what was used; -1: nobody. */
void room_clear(struct room_supplies *supplies, int launcher);

#endif
