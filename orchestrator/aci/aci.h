/* cage-aci: a sandbox as a container group of Azure Container Instances. Towards its keeper it plays the part of `cage run`
 * (orchestrator/control.h) and of the cage-inside in its room (orchestrator/inside/frame.h): the one command that it is asked to run
 * becomes the group, the log of the agent's container its output.
 *
 *	ACI_WAITS -> ACI_LOOKS -> ACI_QUOTA -> ACI_CREATES -> ACI_RUNS -> ACI_TELLS -> ACI_DELETES -> ACI_ENDED
 *	                ^            |             |
 *	                +------------+-------------+      the next region, or an answer that was lost
 *
 *	WAITS     for the command
 *	REGISTERS of topology split, before LOOKS: the gateway is told who will come
 *	LOOKS    is there a group of that name? So one whose creation was cut off is found again, and never made twice
 *	QUOTA    what the region has left
 *	CREATES  the group is asked for, and comes up or does not
 *	CLEARS   what did not is removed before the next region is tried
 *	RUNS     its state and its logs are looked at again and again
 *	TELLS    the agent has ended, and what is left of the logs is taken
 *	DELETES  the group goes, whatever it was
 *	LEAVES   of topology split, after it: the gateway is told that nobody comes any more
 *
 * Any of them may be left for ACI_DELETES: when the keeper is gone, or wants the end. aci_enter() alone changes the state. */
#ifndef CAGE_ACI_H
#define CAGE_ACI_H

#include "orchestrator/aci/split.h"
#include "orchestrator/azure/log_window.h"
#include "orchestrator/azure/operation.h"
#include "orchestrator/control.h"
#include "orchestrator/gate/room_limits.h"
#include "orchestrator/inside/frame.h"
#include "orchestrator/options.h"

#define ACI_VERSION "2025-09-01"
#define ACI_TYPE "Microsoft.ContainerInstance/containerGroups"
#define ACI_TAG_ID "cage.sandbox"
#define ACI_TAG_STATE "cage.state"
#define ACI_PATH 4200

#define EXIT_FAILED 1
#define EXIT_WRONG 2 /* wrong usage or wrong policy */

enum aci_topology {
	TOPOLOGY_GROUP, /* agent, proxy and dns in one group; the gate parts them */
	TOPOLOGY_SPLIT  /* the agent, and a relay to the gateway, in a subnet from which nothing else can be reached */
};

/* What is said of Azure, and the same for all sandboxes of a service. */
struct aci_options {
	struct azure_options azure;
	enum aci_topology topology;
	struct words regions; /* tried in this order */
	const char *image, *proxy_image, *dns_image, *gate_image;
	const char *admit;      /* image that a create names, and the policy has to let in; NULL: none */
	const char *signatures; /* a directory, for that one; NULL: none */
	const char *subnet;     /* resource id; NULL: none */
	const char *identity;   /* resource id, of the group: for the registry and the proxy's Key Vault; NULL: none */
	const char *registry;   /* server from which that identity pulls; NULL: images are public */
	const char *sku;        /* Standard or Confidential */
	/* of TOPOLOGY_SPLIT */
	const char *gateway, *gateway_dns; /* ADDRESS:PORT, of its proxy and of its dns; the latter may be NULL */
	const char *intake, *intake_ca;    /* its address, and whom to believe there; the latter may be NULL */
	const char *state;                 /* value of ACI_TAG_STATE */
	struct run_options run;
};

enum aci_state {
	ACI_WAITS,
	ACI_REGISTERS,
	ACI_LOOKS,
	ACI_QUOTA,
	ACI_CREATES,
	ACI_CLEARS,
	ACI_RUNS,
	ACI_TELLS,
	ACI_DELETES,
	ACI_LEAVES,
	ACI_ENDED
};

enum aci_container { ACI_AGENT, ACI_PROXY, ACI_DNS, ACI_CONTAINERS };

/* The log of a container, as it is taken over. */
struct aci_log {
	struct log_window window;
	struct arm_call call;
	bool is_last; /* the look that is under way is the last one */
	int fd;       /* of the file that it goes to; -1: to the keeper, or nowhere */
};

struct aci {
	const struct aci_options *options;
	enum aci_state state;
	int code; /* of ACI_ENDED */
	struct arm arm;
	struct arm_call call;
	struct operation operation;
	struct control control;
	int signals;
	char path[LIMIT_ARM_URL]; /* of the group, with its api-version */
	size_t region;            /* that is tried */
	unsigned looks;           /* for a group whose creation was cut off */
	uint64_t look_us;         /* when its state is looked at next */
	struct room_limits limits;
	struct words command, proxy_env, agent_env;
	struct split split; /* of that topology */
	/* the keeper */
	struct frame_reader in;
	uint16_t job;        /* the command's id */
	size_t window;       /* bytes of output that the keeper takes now */
	char *held;          /* owned: output that waits for that */
	size_t n_held, room; /* of it */
	/* the agent */
	struct aci_log logs[ACI_CONTAINERS];
	bool has_started, has_ended;
	int exit_code;
};

void aci_enter(struct aci *a, enum aci_state next);

static inline bool aci_is_split(const struct aci_options *o)
{
	return o->topology == TOPOLOGY_SPLIT;
}

/* There is no group, or none of ours: the end, or what comes before it. */
void aci_leave(struct aci *a);

/* It can't go on: said, and the group is deleted. */
void aci_fail(struct aci *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* options.c */
enum options_action aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what);
void aci_options_free(struct aci_options *o);

/* group.c: the body of the PUT; NULL after it was said why. */
json_t *group_body(const struct aci *a, const char *region);

/* names.c */
extern const char *const aci_containers[ACI_CONTAINERS];
bool aci_group_has_failed(const json_t *group); /* as a GET tells of it */
void aci_group_path(const struct arm *a, const char *id, const char *below, char out[LIMIT_ARM_URL]);

/* create.c: from ACI_LOOKS to ACI_CLEARS */
void create_begin(struct aci *a);
void create_look(struct aci *a);

/* watch.c: ACI_RUNS and ACI_TELLS */
void watch_begin(struct aci *a);
void watch_look(struct aci *a);
bool logs_open(struct aci *a);
void logs_close(struct aci *a);

/* keeper.c */
void keeper_say(enum frame_kind kind, uint16_t id, struct slice payload);
bool keeper_take(struct aci *a); /* false: it is gone */
void keeper_output(struct aci *a, struct slice line);
void keeper_flush(struct aci *a);
void keeper_done(struct aci *a);

/* loop.c */
void aci_loop(struct aci *a);

/* end.c */
int aci_remove(const struct aci_options *o, const char *id);
int aci_list(const struct aci_options *o);
int aci_check(const struct aci_options *o);

#endif
