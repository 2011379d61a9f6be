/* Sets of steps are words of 64 bits. */
#include "orchestrator/service/workflow_graph.h"

_Static_assert(LIMIT_WORKFLOW_STEPS <= 64, "a set of steps is one word");

void graph_need(struct graph *g, size_t step, size_t needed)
{
	g->needs[step] |= 1ull << needed;
}

/* After the k-th round, `all` is right for ways that lead through the first k steps only. */
void graph_close(struct graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->all[i] = g->needs[i];
	for (size_t k = 0; k < g->n; k++)
		for (size_t i = 0; i < g->n; i++)
			if (g->all[i] >> k & 1)
				g->all[i] |= g->all[k];
}

bool graph_reaches(const struct graph *g, size_t step, size_t needed)
{
	return g->all[step] >> needed & 1;
}

bool graph_is_circular(const struct graph *g, size_t step)
{
	return graph_reaches(g, step, step);
}
