/* Seats, and which policy each has: compiled where it is new, kept where it is what stands there already. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/proc/master.h"

static void let_go(uint32_t slot, int fd)
{
	policy_store_unmap(slot);
	close(fd);
}

/* What is new at a seat is the next generation. fd: of its policy; what was there is let go, unless it is the same. */
static void change_seat(struct master *m, size_t i, struct seat now, int fd)
{
	struct children *c = &m->children;
	struct seat *seat = &c->seats[i];
	if (seat->policy && c->policies[i] != fd)
		let_go(seat->slot, c->policies[i]);
	now.gen = ++c->gen;
	*seat = now;
	c->policies[i] = fd;
}

static struct seat seat_with(const struct seat *policy, const struct seat *who)
{
	struct seat now = *policy;
	memcpy(now.id, who->id, sizeof(now.id));
	now.id_len = who->id_len;
	memcpy(now.proof, who->proof, sizeof(now.proof));
	return now;
}

void master_set_seat(struct master *m, size_t seat, const struct seat *who, bool keeps_policy)
{
	const struct seat empty = {.policy = NULL};
	const struct seat *policy = keeps_policy ? &m->children.seats[seat] : &empty;
	change_seat(m, seat, seat_with(policy, who), keeps_policy ? m->children.policies[seat] : -1);
}

/* All that was read for it is the same. */
static bool is_same_policy(const struct policy *a, const struct policy *b)
{
	if (strcmp(a->sha, b->sha) != 0 || a->trust.n_pems != b->trust.n_pems)
		return false;
	for (size_t i = 0; i < a->trust.n_pems; i++)
		if (!slice_eq(a->trust.pems[i], b->trust.pems[i]))
			return false;
	return true;
}

/* Into the slot behind that of the policy which it is to replace. */
static const struct policy *compile(struct master *m, const char *path, uint32_t slot, int *fd, size_t *size)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	if (!errs)
		return NULL;
	const struct policy *p =
		policy_store_compile(path, slot, m->children.gen + 1, m->program->load, m->owner, errs, fd, size);
	if (!p)
		policy_errors_print(errs, STDERR_FILENO);
	free(errs);
	return p;
}

/* With a roster a reload is for whoever has changed: the others keep what they have, and their connections. */
static const struct policy *standing(const struct master *m, size_t seat)
{
	return seat > 0 || m->has_roster ? m->children.seats[seat].policy : NULL;
}

/* Into force, unless it is what stands there: that is accepted once more then, so that values are read again. */
static enum master_load take(struct master *m, size_t seat, const struct seat *who, const struct seat *new, int fd)
{
	const struct policy *before = standing(m, seat);
	const bool is_same = before && is_same_policy(new->policy, before);
	const bool is_good = m->program->accept(m->owner, seat, is_same ? before : new->policy);
	if (is_same || !is_good) {
		let_go(new->slot, fd);
		return is_good ? MASTER_KEPT : MASTER_REJECTED;
	}
	change_seat(m, seat, seat_with(new, who), fd);
	m->loads[seat]++;
	return MASTER_LOADED;
}

enum master_load master_load_policy(struct master *m, size_t seat, const struct seat *who, const char *path)
{
	const struct policy *before = standing(m, seat);
	const uint32_t slot = (uint32_t)seat * LIMIT_POLICY_SLOTS + m->loads[seat] % LIMIT_POLICY_SLOTS;
	size_t size = 0;
	int fd = -1;
	if (before && policy_is_as_in(before, path))
		return MASTER_KEPT;
	const struct policy *p = compile(m, path, slot, &fd, &size);
	if (!p)
		return MASTER_REJECTED;
	const struct seat new = {.policy = p, .policy_gen = p->gen, .slot = slot, .size = size};
	const enum master_load done = take(m, seat, who, &new, fd);
	malloc_trim(0); /* loading takes much more than what stays, and every child would inherit it */
	return done;
}
