/* Groups that stand ready in a standby pool of Azure (Microsoft.StandbyPool). They are made from a container group profile: the body of a
 * group as group.c makes it, less all that belongs to a run. Each of its containers begins with `cage-inside --await`, and nothing runs or
 * listens in it until a group is taken for a sandbox: then its config maps say what is run (orchestrator/inside/given.h).
 *
 * A pool and its profile have one name, made from the body itself and from what else the groups depend on. So a run knows the pool
 * whose groups are just what it would ask for, another image or limit means another pool, and a profile never changes.
 *
 * Azure shows config maps to who may look at a group: a run whose proxy needs the value of a secret is not taken from a pool. */
#ifndef CAGE_ACI_STANDBY_H
#define CAGE_ACI_STANDBY_H

#include "orchestrator/aci/aci.h"

#define STANDBY_VERSION "2025-03-01"
#define STANDBY_TYPE "Microsoft.StandbyPool/standbyContainerGroupPools"
#define PROFILE_TYPE "Microsoft.ContainerInstance/containerGroupProfiles"
#define STANDBY_NAME 25    /* bytes of a name, with its NUL */
#define STANDBY_REVISION 1 /* of a profile that nobody has changed */
#define STANDBY_KEY "run"  /* of a config map */
#define STANDBY_USED \
	"/cage-used" /* where a container notes that it was given what to run: nothing shows it to the agent */

/* ---- standby.c ---- */

/* Why runs with these options can't be taken from pools; NULL: they can. */
const char *standby_why_not(const struct aci_options *o);

/* Of the body of a group: that of the profile, and the name of both. NULL: a profile can't have all of it, or no memory. */
json_t *standby_profile(const struct aci_options *o, const json_t *group, char name[STANDBY_NAME]);

/* What a group has in the volume of secrets that is mounted so; NULL: it is none. */
json_t *standby_secret(const json_t *group, const json_t *mount);

/* "/subscriptions/.../NAME", without a version. */
void standby_id(const struct aci_options *o, const char *type, const char *name, char out[LIMIT_ARM_URL]);

/* ---- take.c ---- */

/* The body of the PUT that takes one for this run; NULL: there is no pool for it, or it needs what a config map must not have. */
json_t *standby_take(const struct aci *a, const json_t *group, char name[STANDBY_NAME]);

/* ---- pools.c ---- */

/* Makes those pools, "N:LIMITS" each, and removes all others of this --state; prints the names of those that there are. */
int standby_make(const struct aci_options *o, char **wanted);

/* Prints a line for each. */
int standby_show(const struct aci_options *o);

/* ---- pools_look.c ---- */

struct standby_list {
	char names[LIMIT_ACI_POOLS][STANDBY_NAME];
	size_t n;
};

/* Profiles of this --state: there is one for each pool, made before it, and removed after it. False with a message. */
bool standby_list(struct arm *arm, const struct aci_options *o, struct standby_list *out);

/* Can pools be had, and is there nothing wrong with those that there are? False with a message. */
bool standby_check(struct arm *arm, const struct aci_options *o);

#endif
