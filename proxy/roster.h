/* --sandboxes: a directory with one subdirectory for each sandbox, named by its id:
 *
 *	DIR/ID/token		what it shows as its password
 *	DIR/ID/policy.yaml	its policy; without it, that of --policy
 *
 * Read at the start and again with SIGHUP. What is wrong with one of them is no matter to the others. */
#ifndef CAGE_PROXY_ROSTER_H
#define CAGE_PROXY_ROSTER_H

#include "core/proc/master.h"

/* Brings the master's seats in line with the directory, and names those that can't be (master_refuse()). false, after saying why, if something is not as it should be: a
 * sandbox whose policy or token is no good keeps what it had, and a new one stays out. */
bool roster_read(struct master *m, const char *dir);

/* The sandboxes that there are now. */
size_t roster_count(const struct master *m);

/* DIR/ID/policy.yaml; false: it has none. */
bool roster_policy_path(const char *dir, const char *id, char *out, size_t room);

/* --check: calls `check` with the policy of each sandbox that has one. false: a sandbox is no good, or `check` says so. */
bool roster_check(const char *dir, bool (*check)(void *arg, const char *policy), void *arg);

#endif
