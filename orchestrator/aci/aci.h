/* cage-aci: a sandbox as a container group of Azure Container Instances. Towards its keeper it plays the part of `cage run`
 * (orchestrator/control.h) and of the cage-inside in its room (orchestrator/inside/frame.h): the one command that it is asked to run
 * becomes the group, the log of the agent's container its output.
 *
 *	ACI_WAITS -> ACI_LOOKS -> ACI_QUOTA -> ACI_CREATES -> ACI_RUNS -> ACI_TELLS -> ACI_DELETES -> ACI_ENDED
 *	                ^            |             |
 *	                +------------+-------------+      the next region, or an answer that was lost
 *	                                                       RUNS -> ACI_STOPS -> TELLS, where somebody asks for the end
 *
 *	WAITS     for the command
 *	REGISTERS of topology split, before LOOKS: the gateway is told who will come
 *	LOOKS    is there a group of that name? So one whose creation was cut off is found again, and never made twice
 *	QUOTA    what the region has left; left out where one of a standby pool can be asked for (standby.h)
 *	CREATES  the group is asked for, and comes up or does not
 *	CLEARS   what did not is removed before the next region is tried
 *	RUNS     its state and its logs are looked at again and again
 *	STOPS    its containers are asked to end, so that the agent's last words can be taken
 *	TELLS    the agent has ended, and what is left of the logs is taken
 *	DELETES  the group goes, whatever it was
 *	LEAVES   of topology split, after it: the gateway is told that nobody comes any more
 *
 * Any of them may be left for ACI_DELETES: when the keeper is gone, or wants the end. aci_enter() alone changes the state. */
#ifndef CAGE_ACI_H
#define CAGE_ACI_H

#include "core/base/cost.h"
#include "orchestrator/aci/meter.h"
#include "orchestrator/aci/split.h"
#include "orchestrator/aci/state.h"
#include "orchestrator/azure/log_window.h"
#include "orchestrator/azure/operation.h"
#include "orchestrator/azure/pages.h"
#include "orchestrator/control.h"
#include "orchestrator/gate/room_limits.h"
#include "orchestrator/inside/frame.h"
#include "orchestrator/options.h"

#define ACI_VERSION "2025-09-01"
#define ACI_TYPE "Microsoft.ContainerInstance/containerGroups"
#define ACI_TAG_ID "cage.sandbox"
#define ACI_TAG_STATE "cage.state"
#define ACI_PATH 4200
#define ACI_FILES "/cage-files" /* where the agent's container has the files that it begins with */
#define ACI_FILES_NAME "files"
#define ACI_RESOLVER "168.63.129.16" /* Azure's own, in every network of it */
#define ACI_MAPS "/mnt/configmap"    /* where Azure shows config maps */

#define EXIT_FAILED 1
#define EXIT_WRONG 2 /* wrong usage or wrong policy */

/* What is said of Azure, and the same for all sandboxes of a service. */
struct aci_options {
	struct azure_options azure;
	/* group: agent, proxy and dns in one group, and the gate parts them; split: the agent, and a relay to the gateway, in a subnet from
	 * which nothing else can be reached */
	const char *topology;
	struct words regions; /* tried in this order */
	const char *image, *proxy_image, *dns_image, *gate_image;
	const char *admit;      /* image that a create names, and the policy has to let in; NULL: none */
	const char *signatures; /* a directory, for that one; NULL: none */
	const char *subnet;     /* resource id; NULL: none */
	const char *identity;   /* resource id, of the group: for the registry and the proxy's Key Vault; NULL: none */
	const char *registry;   /* server from which that identity pulls; NULL: images are public */
	const char *sku;        /* Standard or Confidential */
	const char *state;      /* value of ACI_TAG_STATE */
	struct words standby;   /* names of pools that there are (standby.h) */
	const char *map_dir;    /* where a container finds its config map, below its own name */
	bool wants_pools;       /* check: they have to be to be had */
	struct prices prices;   /* for bench; without their currency, ... */
	const char *currency;   /* ... which is this */
	/* of split */
	const char *gateway, *gateway_dns; /* ADDRESS:PORT, of its proxy and of its dns; the latter may be NULL */
	const char *intake, *intake_ca;    /* its address, and whom to believe there; the latter may be NULL */
	char *intake_token;                /* owned; NULL: none */
	struct run_options run;

	/* of a group */
	struct words identities;     /* all of them; `identity` is the first */
	const char *identity_client; /* client id of that of the proxy; NULL: there is no other */
	const char *registry_username, *registry_password_file; /* who pulls instead of an identity; NULL: nobody */
	const char *resolver;                                   /* of proxy and dns */
	const char *vault_secrets; /* who reads the vaults. proxy: it does; reference: Azure */
};

/* Was a group of a pool asked for? Only before all others, and after that it is not asked for again. */
enum aci_pool { POOL_UNTRIED, POOL_ASKED, POOL_PASSED };

enum aci_container { ACI_AGENT, ACI_PROXY, ACI_DNS, ACI_CONTAINERS };

/* Of the decision logs. Where they are not kept any more the run ends. */
enum aci_keeping {
	ACI_LOG_KEPT,
	ACI_LOG_FULL, /* one has reached its bound */
	ACI_LOG_TORN  /* one ends with a part of a line */
};

/* Of ACI_TELLS: is the log of a container all taken over? */
enum aci_log_end { LOG_GOES_ON, LOG_IS_WHOLE, LOG_IS_CUT };

/* The log of a container, as it is taken over. */
struct aci_log {
	struct log_window window;
	struct arm_call call;
	bool is_last; /* the look that is under way is a last one */
	enum aci_log_end end;
	unsigned lasts; /* last looks that were for nothing */
	int fd;         /* of the file that it goes to; -1: to the keeper, or nowhere */
	uint64_t left;  /* bytes that the file may still get */
};

struct aci {
	const struct aci_options *options;
	enum aci_state state;
	int code; /* of ACI_ENDED */
	struct arm arm;
	struct arm_call call, stop; /* stop: of ACI_STOPS */
	struct operation operation;
	struct control control;
	int signals;
	char path[LIMIT_ARM_URL]; /* of the group, with its api-version */
	size_t region;            /* that is tried */
	unsigned looks;           /* for a group whose creation was cut off */
	unsigned doubts;          /* looks that find no group before that is believed; 0: at once */
	uint64_t look_us;         /* when it is looked for, or at, next */
	uint64_t stop_us;         /* until when it may take to stop */
	enum aci_pool pool;
	struct room_limits limits;
	struct words command, proxy_env, agent_env;
	char *registry_password; /* owned; NULL: none */
	struct words vault_urls; /* NUMBER=URL (vault.c) */
	char *files;             /* owned: frames (files.c) */
	size_t n_files;
	bool has_too_much;  /* of them */
	struct split split; /* of that topology */
	/* the keeper */
	struct frame_reader in;
	uint16_t job;        /* the command's id */
	size_t window;       /* bytes of output that the keeper takes now */
	char *held;          /* owned: output that waits for that */
	size_t n_held, room; /* of it */
	/* the agent */
	struct aci_log logs[ACI_CONTAINERS];
	enum aci_keeping keeping;
	bool has_started, has_ended;
	int exit_code; /* or INSTANCE_CODE_UNKNOWN */
	struct meter meter;
};

/* What may not follow is a fault of ours: it ends the program. */
void aci_enter(struct aci *a, enum aci_state next);

/* The group goes, if there may be one, and then what else there is. It may be on its way already. */
void aci_end(struct aci *a);

static inline bool aci_is_split(const struct aci_options *o)
{
	return strcmp(o->topology, "split") == 0;
}

static inline bool aci_refers(const struct aci_options *o)
{
	return strcmp(o->vault_secrets, "reference") == 0;
}

/* There is no group, or none of ours: the end, or what comes before it. */
void aci_leave(struct aci *a);

/* It can't go on: said, and the group is deleted. */
void aci_fail(struct aci *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* options.c: OPTIONS_GO_ON, or an exit code. */
int aci_options_parse(int argc, char **argv, struct aci_options *out, const char **what);
void aci_options_free(struct aci_options *o);

/* group.c: the body of the PUT; NULL after it was said why. */
json_t *group_body(const struct aci *a, const char *region);

json_t *group_encoded(const void *bytes, size_t len);

/* files.c */
void files_take(struct aci *a, const struct frame *f);
void files_add(const struct aci *a, json_t *volumes, json_t *mounts);
void files_free(struct aci *a);

/* registry.c */
bool registry_read(struct aci *a);
void registry_add(const struct aci *a, json_t *properties);
void registry_free(struct aci *a);

/* vault.c */
bool vault_read(struct aci *a);
void vault_add(const struct aci *a, json_t *properties, json_t *proxy);

/* names.c */
extern const char *const aci_containers[ACI_CONTAINERS];
bool aci_group_has_failed(const json_t *group); /* as a GET tells of it */
void aci_group_path(const struct arm *a, const char *id, const char *below, char out[LIMIT_ARM_URL]);

/* create.c: from ACI_LOOKS to ACI_CLEARS */
void create_begin(struct aci *a);
void create_look(struct aci *a);

/* watch.c: ACI_RUNS to ACI_TELLS */
void watch_begin(struct aci *a);
void watch_look(struct aci *a);
void watch_stop(struct aci *a);
void watch_close(struct aci *a);

/* logs.c */
bool logs_open(struct aci *a);
void logs_close(struct aci *a);
/* False after it was said: they could not be written, and have to be had again. What is beyond the bound fails the run. */
bool log_keep(struct aci *a, enum aci_container c, struct slice lines);

/* meter.c */
void meter_asked(struct aci *a, const json_t *body); /* the group was asked for */
void meter_see(struct aci *a, const json_t *group);  /* as a GET tells of it */
void meter_forget(struct aci *a);                    /* it could not be made */
void meter_look(struct aci *a);
void meter_ask_last(struct aci *a);
void meter_say(struct aci *a, bool is_over);
void meter_drop(struct aci *a);

/* keeper.c */
void keeper_say(enum frame_kind kind, uint16_t id, struct slice payload);
void keeper_refuse(uint16_t id, int why);
bool keeper_take(struct aci *a);                      /* false: it is gone */
bool keeper_output(struct aci *a, struct slice line); /* false: no memory */
void keeper_flush(struct aci *a);
void keeper_done(struct aci *a);

/* loop.c */
void aci_loop(struct aci *a);

/* pages.c: all items of a list of the resource group. False with a message: it is not whole. */
bool aci_pages(struct arm *arm, const char *type, const char *version, pages_item *each, void *arg);

/* Has it the tag of this --state? */
bool aci_is_of(const struct aci_options *o, const json_t *item);

/* main.c: what a group is made from, and signals that end it. False after it was said why not. */
bool aci_read_variables(struct aci *a); /* of the agent */
bool aci_read_secrets(struct aci *a);
bool aci_open_signals(struct aci *a);

/* end.c: of groups with our tag of --state, each of their ids. False with a message: the list is not whole. */
typedef void aci_each(void *arg, const char *id);
bool aci_list_each(struct arm *arm, const struct aci_options *o, aci_each *each, void *arg);
bool aci_remove_one(struct arm *arm, const char *id);
int aci_remove(const struct aci_options *o, const char *id);
int aci_list(const struct aci_options *o);
int aci_check(const struct aci_options *o);

#endif
