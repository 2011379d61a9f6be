/* cage-pod: a sandbox of Podman's containers, which plays the part of `cage run` towards its keeper (orchestrator/control.h).
 *
 *	             internal network, a few addresses, no gateway
 *	  agent -----------------------+
 *	                               +----- proxy and dns, which share one network stack ----- network with a way out
 *
 *	POD_ADMISSION -> POD_NETWORK -> POD_CONTAINERS -> POD_DOOR -> POD_RUNS -> POD_ENDED
 *
 *	ADMISSION   the image that somebody asked for is looked at; there is nothing of the sandbox yet
 *	NETWORK     the internal network is made, in a subnet that nobody has
 *	CONTAINERS  those of the helpers and that of the agent start; the agent's waits at its door (gvisor.c: in more steps)
 *	DOOR        the helpers are ready, the door was told to go on, and looks at its network
 *	RUNS        it has said that the agent is locked in, and become the agent's command
 *
 * pod_enter() alone changes the state. All is made of podman commands, and carries labels by which it is found again. */
#ifndef CAGE_POD_H
#define CAGE_POD_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "orchestrator/control.h"
#include "orchestrator/gate/room_limits.h"
#include "orchestrator/launch.h"
#include "orchestrator/options.h"
#include "orchestrator/own_files.h"
#include "orchestrator/rundir.h"

#define POD_PATH 4200
#define POD_HOME "/home/agent"
#define POD_WORKSPACE "/workspace"
#define POD_ADDRESSES 8 /* of a sandbox's network */
#define POD_IMAGE_ID 65 /* hex digits, and a NUL */
#define POD_DRIVER 32   /* bytes of "overlay" and the like */
#define POD_LABEL_ID "cage.sandbox"
#define POD_LABEL_STATE "cage.state"

#define EXIT_FAILED 1
#define EXIT_WRONG 2 /* wrong usage or wrong policy */

/* What is said of Podman, and the same for all sandboxes of a service. Names of images; one that begins with a slash is a
 * directory, the root of such a container. */
struct pod_options {
	const char *podman; /* the program */
	const char *runtime, *cgroup_manager, *storage_driver, *root, *runroot, *tmpdir,
		*network_config; /* NULL: its own choice */
	const char *image, *proxy_image, *dns_image;
	const char *
		admit; /* the image of the agent, if it is one that was asked for: image does not count then; NULL: none */
	const char *signatures; /* a directory, for that one; NULL: none */
	const char *network;    /* that leads out */
	const char *state;      /* value of POD_LABEL_STATE */
	struct in_addr pool;    /* from which subnets are taken */
	unsigned pool_bits;
	uint32_t uids; /* the first of users: two for each subnet of the pool */
	struct run_options run;
};

/* One podman command; call.c. */
enum call_state {
	CALL_NONE,
	CALL_RUNS,
	CALL_GOOD,
	CALL_FAILED,
	CALL_LATE /* its time was over, and it was killed */
};

struct call {
	enum call_state state;
	pid_t pid;
	int out, err; /* pipes; -1: closed */
	uint64_t until_us;
	char printed[LIMIT_POD_SAID], said[LIMIT_POD_SAID];
	size_t n_printed, n_said;
};

enum container_state {
	CONTAINER_NONE,
	CONTAINER_CREATING, /* this and the next one: under gVisor only */
	CONTAINER_PREPARING,
	CONTAINER_STARTING,
	CONTAINER_RUNS,
	CONTAINER_ENDED
};
enum role { ROLE_PROXY, ROLE_DNS, ROLE_AGENT, ROLES };

struct container {
	struct pod *pod;
	enum container_state state;
	struct call call;
	int pidfd;            /* of its first process; -1: not known, or ended */
	int words;            /* to its door; -1: said */
	struct helper helper; /* what it says; of the agent's only until it is locked in */
	uint64_t heard;       /* bytes of that */
};

enum seccomp_of { SECCOMP_OF_KERNEL, SECCOMP_OF_GVISOR }; /* who obeys the filter */

/* Who removes a sandbox knows whether a podman command that makes some of it may still be under way. */
enum pod_makers { MAKERS_UNKNOWN, MAKERS_ENDED };

enum pod_state { POD_ADMISSION, POD_NETWORK, POD_CONTAINERS, POD_DOOR, POD_RUNS, POD_ENDED };

struct pod {
	const struct pod_options *options;
	enum pod_state state;
	int code;        /* of POD_ENDED */
	bool has_begun;  /* the agent is locked in, and its command runs: POD_RUNS was entered */
	bool is_limited; /* time of the whole sandbox */
	uint64_t until_us, start_until_us, sample_us;
	struct rundir dir;
	char ca_dir[POD_PATH], log[POD_PATH], dns_log[POD_PATH];
	struct call admission;       /* what tells of the image that was asked for */
	char admitted[POD_IMAGE_ID]; /* its id; "": none was asked for, or it is not known yet */
	char driver[POD_DRIVER];     /* of the storage that has it */
	struct room_limits limits;
	uint64_t disk;
	struct words proxy_env, agent_env, dns_env;
	struct own_files own;
	struct control control;
	int signals;
	struct in_addr subnet; /* the first address of it */
	uint32_t place;        /* of it in the pool */
	unsigned tries;
	struct call network, inspect; /* what makes it, and what tells of its bridge */
	char bridge[IFNAMSIZ];        /* "": not known yet */
	struct container containers[ROLES];
	struct handoff_usage usage;
	char cgroups[2][POD_PATH]; /* directories of the agent's: memory and cpu; the same for version 2 */
	char cgroup_pids[POD_PATH];
};

void pod_enter(struct pod *p, enum pod_state next);
void container_enter(struct container *c, enum container_state next);
void pod_end(struct pod *p, int code);

/* names.c */
extern const char *const role_names[ROLES];
void pod_container_name(const struct pod *p, enum role role, char out[LIMIT_POD_NAME]);
void pod_network_name(const struct pod *p, char out[LIMIT_POD_NAME]);
void pod_pidfile(const struct pod *p, enum role role, char out[POD_PATH]);
struct in_addr pod_address(const struct pod *p, enum role role);
uid_t pod_uid(const struct pod *p, enum role role); /* and its group */

/* options.c: OPTIONS_GO_ON, or an exit code. */
int pod_options_parse(int argc, char **argv, struct pod_options *out, const char **what);
void pod_options_free(struct pod_options *o);

/* call.c: begins `podman WORDS...` with fds from 3 on; false with a message. */
void call_words(const struct pod_options *o, struct words *argv);
void call_words_with(const struct pod_options *o, const char *runtime, struct words *argv);
bool call_begin(struct call *c, const struct pod_options *o, struct words *argv, const int *fds, size_t n_fds);
bool call_begin_list(struct call *c, const struct pod_options *o, struct words *argv); /* it prints where we do */
bool call_begin_with(struct call *c, const struct pod_options *o, struct words *argv,
		     const int streams[3]);  /* which are its container's */
void call_listen(struct call *c);            /* after poll() */
void call_ended(struct call *c, int status); /* it was waited for */
void call_look(struct call *c);              /* kills it if its time is over */
void call_stop(struct call *c);              /* kills it, which is for what changes nothing */
void call_await(struct call *c);             /* waits for its end */
void call_tell(const struct call *c, const char *what);
void call_wait_for(pid_t pid); /* another program; it is killed when its time is over */

/* monitors.c: podman commands that still make containers of a sandbox, and which nobody waits for any more, are waited for. */
void monitors_await(const struct pod_options *o, const char *id);

/* Containers of a sandbox of which Podman has removed all that it knows. True: there were some. */
bool monitors_end(const struct pod_options *o, const char *id);

/* When ours are gone: a sandbox of another storage has the same id. */
bool monitors_are_others(const char *id);

/* The directory from which the runtime has made the container with that first process, by who watches over it. */
bool monitors_bundle(pid_t first, char out[POD_PATH]);

/* leases.c: when nothing of the sandbox is there any more. False: something of it is left. */
bool leases_remove(const struct pod_options *o, const char *id);

/* gvisor.c */
bool gvisor_runs(const struct pod_options *o, enum role role);
bool gvisor_begin(struct pod *p);
bool gvisor_go_on(struct pod *p);
uint64_t gvisor_pids(uint64_t pids);

/* files.c, home.c, annotations.c, routes.c, admit.c, seccomp.c, lines.c, network.c, start.c, loop.c, end.c, usage.c: false after it was said why. */
bool files_make(struct pod *p);
bool files_copy_policy(struct pod *p);
bool files_shown(const struct pod *p, size_t i, char copy_of[POD_PATH]); /* of that word of --bind-ro there is a copy */
bool files_own(const struct pod *p); /* when the subnet is known, and so its users */
bool home_own(const struct pod *p, pid_t pid);
bool annotations_are_good(const struct pod *p, pid_t first, const char *role);
bool routes_close(const struct pod *p, int pidfd);
bool admit_begin(struct pod *p);
bool admit_go_on(struct pod *p); /* what was asked is answered */
bool seccomp_write(const char *path, enum seccomp_of of);
bool lines_of(const struct pod *p, enum role role, struct words *argv, size_t n_fds);
bool network_begin(struct pod *p);
bool network_is_free(struct in_addr subnet);
bool network_ask_bridge(struct pod *p);
bool network_take_bridge(struct pod *p);
bool network_close_bridge(const struct pod *p);
bool network_within(int pidfd, bool (*act)(const struct pod *p),
		    const struct pod *p); /* in the network of that process */
bool start_container(struct pod *p, enum role role);
void start_listening(struct container *c, enum role role, int words, int said, int reloads);
bool start_found(struct pod *p, enum role role, char *id);
bool start_running(struct pod *p, enum role role);
bool start_agent(struct pod *p);
void pod_loop(struct pod *p);
void pod_close(struct pod *p);
int pod_remove(const struct pod_options *o, const char *id, enum pod_makers makers);
int pod_list(const struct pod_options *o);
bool usage_find(struct pod *p, pid_t pid, const char *id);
bool usage_bound(const struct pod *p);
void usage_take(struct pod *p);

#endif
