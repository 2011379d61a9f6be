/* Compiled policies shared between processes. The master reserves address space before it forks; each policy is
 * compiled into a memory file mapped there, sealed, and mapped read-only at the same address by every worker. So a
 * policy is plain C with plain pointers, compiled once, outside the workers' loops, and no worker can change it. */
#ifndef CAGE_PROC_POLICY_STORE_H
#define CAGE_PROC_POLICY_STORE_H

#include "core/policy/policy.h"

/* Loads the policy in path into the arena with the readers that a program has. NULL with errs filled. */
typedef struct policy *policy_store_loader(void *arg, const char *path, struct arena *arena,
					   struct policy_errors *errs);

/* Before the first fork: slots 0 to n - 1. false with errno. */
bool policy_store_reserve(size_t n);

/* Compiles path as generation gen into a slot in which nothing is. Returns NULL with errs filled. *fd and *size are what a
 * worker needs to map it; fd is the caller's. */
const struct policy *policy_store_compile(const char *path, uint32_t slot, uint64_t gen, policy_store_loader *load,
					  void *arg, struct policy_errors *errs, int *fd, size_t *size);

/* Makes one error of errs that is about path as a whole. */
void policy_store_error(struct policy_errors *errs, const char *path, const char *what);

/* In a worker: maps what the master has compiled. */
enum cage_status policy_store_map(uint32_t slot, int fd, size_t size) MUST_CHECK;

/* Gives the memory of a policy back; its slot stays reserved. */
void policy_store_unmap(uint32_t slot);

#endif
