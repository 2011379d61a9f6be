/* Slots of address space, one per living policy. */
#include "core/proc/policy_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char *slots;

bool policy_store_reserve(size_t n)
{
	void *p = mmap(NULL, n * LIMIT_POLICY_REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	slots = p;
	return true;
}

static void *address_of(uint32_t slot)
{
	return slots + slot * LIMIT_POLICY_REGION;
}

void policy_store_unmap(uint32_t slot)
{
	if (mmap(address_of(slot), LIMIT_POLICY_REGION, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		__builtin_trap(); /* replacing our own mapping can't fail but for a broken kernel */
}

void policy_store_error(struct policy_errors *errs, const char *path, const char *what)
{
	struct policy_error *e = &errs->list[0];
	errs->n = 1;
	snprintf(e->file, sizeof(e->file), "%s", path);
	snprintf(e->text, sizeof(e->text), "%s", what);
	e->line = e->column = 0;
}

/* Only whole pages can be mapped. */
static size_t round_to_page(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (n + page - 1) / page * page;
}

/* From being written to sealed and read-only, no larger than it need be. */
static bool seal(uint32_t slot, int fd, size_t size)
{
	policy_store_unmap(slot);
	return ftruncate(fd, (off_t)size) == 0 &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0 &&
	       policy_store_map(slot, fd, size) == CAGE_OK;
}

const struct policy *policy_store_compile(const char *path, uint32_t slot, uint64_t gen, policy_store_loader *load,
					  void *arg, struct policy_errors *errs, int *fd, size_t *size)
{
	*fd = memfd_create("cage-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)LIMIT_POLICY_REGION) != 0 ||
	    mmap(address_of(slot), LIMIT_POLICY_REGION, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0) ==
		    MAP_FAILED) {
		policy_store_error(errs, path, "no memory to compile the policy: memory file");
		goto fail;
	}
	struct arena arena;
	arena_init_region(&arena, address_of(slot), LIMIT_POLICY_REGION);
	struct policy *p = load(arg, path, &arena, errs);
	if (!p)
		goto fail;
	p->gen = gen;
	*size = round_to_page(arena.used);
	if (seal(slot, *fd, *size))
		return p;
	policy_store_error(errs, path, "no memory to compile the policy: sealing");
fail:
	policy_store_unmap(slot);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return NULL;
}

enum cage_status policy_store_map(uint32_t slot, int fd, size_t size)
{
	if (size > LIMIT_POLICY_REGION ||
	    mmap(address_of(slot), size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return CAGE_ESYS;
	return CAGE_OK;
}
