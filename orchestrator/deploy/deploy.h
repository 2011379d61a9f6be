/* cage-azure: what infra/azure/main.json describes is made, previewed and removed, by Azure's API of deployments. Start reading here.
 *
 *	up      resource group, deployment, watching it (up.c, follow.c), what came of it (outputs.c)
 *	plan    what-if (plan.c, plan_print.c); it sends nothing that changes anything
 *	down    all of the resource group that `up` made (down.c), or what its deployments made in one of somebody else (ours.c)
 *
 * Nothing is kept here between two runs: what there is, is asked of Azure, and tags say whose it is. So whatever was cut off can be run
 * again. All calls go through session.c, which takes values of secure parameters out of each answer before anybody sees it. */
#ifndef CAGE_DEPLOY_DEPLOY_H
#define CAGE_DEPLOY_DEPLOY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "orchestrator/azure/operation.h"
#include "orchestrator/deploy/progress.h"
#include "orchestrator/deploy/secure.h"
#include "orchestrator/words.h"

#define DEPLOY_VERSION "2021-04-01"       /* of resource groups, their resources and deployments */
#define DEPLOY_VAULT_VERSION "2023-07-01" /* of deleted vaults */
#define DEPLOY_TAG "cage.owner"           /* of resource groups, deployments and the vault */
#define DEPLOY_OWNER "cage-azure"
#define DEPLOY_TAG_DIGEST "cage.digest"   /* of a deployment: template and parameters, unless one of them is secure */
#define DEPLOY_TAG_ATTEMPT "cage.attempt" /* of a deployment: which run of this program has asked for it */

#define EXIT_FAILED 1
#define EXIT_WRONG 2
#define EXIT_STOPPED 130 /* by Ctrl-C */

enum deploy_verb { DEPLOY_UP, DEPLOY_PLAN, DEPLOY_DOWN };

struct deploy_options {
	enum deploy_verb verb;
	struct azure_options azure;
	const char *location, *template, *parameters, *name; /* NULL, but for the last: not given */
	struct words set, set_file, set_env;                 /* NAME=... */
	bool no_wait, json, yes, only_ours;
};

struct deploy {
	const struct deploy_options *options;
	struct arm arm;
	int signals;
	bool is_stopped; /* by a signal: nothing more is asked for */
	bool has_asked;  /* for a change, which Azure may have begun */
	struct secure secure;
	bool has_secure; /* values of secure parameters were given, whether they can be found again or not */
	struct progress progress;
	json_t *template, *values; /* owned; values: {NAME: {"value": ...}} */
};

/* options.c: OPTIONS_GO_ON, or an exit code. */
int deploy_options_parse(int argc, char **argv, struct deploy_options *out);
void deploy_options_free(struct deploy_options *o);

/* template.c: d->template and d->values. 0, or an exit code after it was said what is wrong. */
int template_read(struct deploy *d);

struct parameters;

/* gateway.c: what Azure would take for the gateway of our template, and cage-gateway refuse. */
void gateway_judge(struct deploy *d, struct parameters *p);

/* policy_ask.c: what cage-proxy says of the policy in that parameter. */
void policy_ask(struct deploy *d, struct parameters *p, const char *name);

/* Resources of a template, whether they are a list or have names. */
json_t *template_resource(const json_t *template, size_t i);

/* The body of a deployment or a what-if; NULL: no memory, or more than Azure takes, which was said. */
json_t *template_body(struct deploy *d);

/* ---- session.c ---- */

bool session_open(struct deploy *d, const struct deploy_options *o);
void session_close(struct deploy *d);

/* Waits for Azure, a signal or so long. False: stopped. */
bool session_wait(struct deploy *d, int ms);

/* The same for all of that time. */
bool session_rest(struct deploy *d, int ms);

/* Until it is done. False: no success, or stopped. body is taken over. The caller frees the call in any case. */
bool session_ask(struct deploy *d, struct arm_call *c, const char *method, const char *where, json_t *body,
		 enum arm_repeat repeat);

/* A resource by its path, GET. */
bool session_get(struct deploy *d, struct arm_call *c, const char *where);

/* All pages of a list, as one array; NULL: it was said why, or it was stopped. */
json_t *session_list(struct deploy *d, const char *where);

/* Until it has come to an end. False: it has not ended well, or was stopped. */
bool session_operate(struct deploy *d, struct operation *o, const char *method, const char *where, json_t *body);

/* What was asked for goes on without us: said once, with how to look. */
int session_stopped(const struct deploy *d, const char *what);

/* Paths below the subscription, and below the resource group; more begins with a slash or is "". */
void path_subscription(const struct deploy *d, const char *more, const char *version, char out[LIMIT_ARM_URL]);
void path_group(const struct deploy *d, const char *more, char out[LIMIT_ARM_URL]);
void path_deployment(const struct deploy *d, const char *name, const char *more, char out[LIMIT_ARM_URL]);

/* Can it be a path as it is? Ids come from answers. */
bool path_is_plain(const char *path);

/* Is it the id of something in our resource group, and can be a path? */
bool id_is_within(const struct deploy *d, const char *id);

/* ---- errors.c: what Azure says of a failure, with all that is nested in it ---- */

/* One line each; about: what it is of. error: {"code", "message", "details"}. */
void errors_say(const char *about, const json_t *error);

/* Of a call or operation that has failed. */
void errors_say_call(const char *about, const struct arm_call *c);
void errors_say_operation(const char *about, const struct operation *o);

/* ---- the commands; each gives an exit code ---- */

int deploy_up(struct deploy *d);
int deploy_plan(struct deploy *d);
int deploy_down(struct deploy *d);

/* group.c: the resource group. */
enum group_found { GROUP_IS, GROUP_ABSENT, GROUP_UNKNOWN };
enum group_found group_look(struct deploy *d, json_t **out); /* out is owned by the caller */
bool tag_is_ours(const json_t *what); /* also of a deployment, or of a deleted vault's properties */
int group_make(struct deploy *d);     /* if it is not there; an exit code */

/* follow.c: from a deployment that runs to its end. */
enum follow_end { FOLLOW_GOOD, FOLLOW_BAD, FOLLOW_STOPPED, FOLLOW_LOST };
/* attempt: its tag. Both others are the caller's; NULL: none. */
enum follow_end follow(struct deploy *d, const char *attempt, json_t **deployment, json_t **operations);
bool deployment_is_active(const json_t *deployment);

/* outputs.c */
bool outputs_print(const struct deploy *d, const json_t *deployment);
void failures_say(const struct deploy *d, const json_t *deployment, const json_t *operations);

/* plan_name.c: a resource of the template, as far as it can be told without Azure. by: the parameter that decides. */
enum plan_wanted { PLAN_WANTED, PLAN_OFF, PLAN_PERHAPS };
enum plan_wanted plan_wanted(const struct deploy *d, const json_t *resource, char by[LIMIT_DEPLOY_NAME]);
void plan_name(const struct deploy *d, const json_t *resource, char out[LIMIT_CLIENT_CELL]);

/* plan_print.c: an exit code. */
int plan_print(const struct deploy *d, const json_t *changes);
int plan_print_template(const struct deploy *d);

/* remove.c: a list of {"id", "version"}; those that are gone are taken out of it. say_why: of those that are not. */
void remove_all(struct deploy *d, json_t *list, bool say_why);
void remove_add(json_t *list, const char *id, const char *version);
void remove_drop_gone(json_t *list); /* of another list, with the same items */

/* ours.c: what deployments of ours have made, and sandboxes with their pools and profiles. */
json_t *ours_list(struct deploy *d, const json_t *resources); /* with "needs": [ids]; NULL: it was said */
void ours_add_sandboxes(const json_t *resources, bool of_anybody, json_t *out); /* of_anybody: without our tags too */
int ours_remove(struct deploy *d, json_t *list); /* in an order in which they can be removed; an exit code */

/* vaults.c: deleted ones that keep their names. An exit code. among: what was removed; NULL: nothing was, so it is asked first. */
int vaults_purge(struct deploy *d, const json_t *among);

/* confirm.c: 0: the name of the group was typed to do that, or --yes given; else an exit code, and it is said that nothing was done. */
int confirm(struct deploy *d, const char *what, const char *done);

#endif
