/* Workflows that are over: removed when that is asked for, or their time is over; first what they stored, then their rows, so that
 * nothing is left of which nobody knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/service/workflow.h"
#include "orchestrator/service/workflow_files.h"

struct workflow_removal {
	struct workflow_removal *next;
	struct service *service;
	char id[STORE_ID];
	enum removal_state { REMOVAL_RESTS, REMOVAL_RUNS } state;
	uint64_t tries, at_us; /* that have failed; monotonic: when it may run again */
};

/* It runs, and rests until it is tried again. */
static void enter(struct workflow_removal *r, enum removal_state next)
{
	if (next == r->state)
		abort();
	r->state = next;
}

static struct workflow_removal *find(const struct service *s, const char *id)
{
	for (struct workflow_removal *r = s->workflow_removals; r; r = r->next)
		if (strcmp(r->id, id) == 0)
			return r;
	return NULL;
}

static void forget(struct workflow_removal *r)
{
	struct workflow_removal **at = &r->service->workflow_removals;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	free(r);
}

static void rest(struct workflow_removal *r)
{
	uint64_t wait_s = LIMIT_SERVE_RETRY_S;
	for (uint64_t i = 0; i < r->tries && wait_s < LIMIT_SERVE_RETRY_MAX_S; i++)
		wait_s *= 2;
	enter(r, REMOVAL_RESTS);
	r->tries++;
	r->at_us = clock_mono_us() + (wait_s < LIMIT_SERVE_RETRY_MAX_S ? wait_s : LIMIT_SERVE_RETRY_MAX_S) * 1000000ull;
}

static void on_removed(void *arg, int status, struct slice said)
{
	struct workflow_removal *r = arg;
	(void)said;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		say("%s: what it left can't be removed: %s", r->id,
		    WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "it took too long");
		rest(r);
	} else if (store_workflow_remove(r->service->store, r->id) == STORE_OK) {
		forget(r);
	} else {
		rest(r);
	}
}

static void run(struct workflow_removal *r)
{
	if (r->state == REMOVAL_RESTS && clock_mono_us() >= r->at_us &&
	    workflow_files_remove(r->service, r->id, on_removed, r))
		enter(r, REMOVAL_RUNS);
}

/* ---- what is due ---- */

static void add_due(void *arg, const struct workflow_row *row)
{
	struct service *s = arg;
	struct workflow_removal *r = find(s, row->id) ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return;
	*r = (struct workflow_removal){.next = s->workflow_removals, .service = s};
	memcpy(r->id, row->id, sizeof(r->id));
	s->workflow_removals = r;
}

void workflow_removals_look(struct service *s)
{
	const int64_t before = (int64_t)clock_wall_us() - (int64_t)s->config.retention_us;
	if (s->stopping || store_workflow_due(s->store, before, add_due, s) != STORE_OK)
		return;
	for (struct workflow_removal *r = s->workflow_removals; r; r = r->next)
		run(r);
}

void workflow_removals_free(struct service *s)
{
	while (s->workflow_removals) {
		struct workflow_removal *r = s->workflow_removals;
		s->workflow_removals = r->next;
		child_forget(s->children, r);
		free(r);
	}
}
