/* Changes that wait for each other. The first one is being made. */
#include <stdlib.h>
#include <string.h>

#include "core/base/wipe.h"
#include "orchestrator/gateway/change_private.h"

struct change *change_new(struct gateway *g, enum change_kind kind, struct slice id)
{
	struct change *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->gateway = g;
	c->kind = kind;
	if (id.len > 0)
		memcpy(c->id, id.ptr, id.len);
	return c;
}

void change_free(struct change *c)
{
	wipe_free(c->token);
	free(c->policy);
	words_free(&c->errors);
	json_decref(c->env);
	free(c);
}

bool change_ask(struct change *c)
{
	struct gateway *g = c->gateway;
	size_t n = 0;
	for (struct change *at = g->first; at; at = at->next)
		n++;
	if (n >= LIMIT_GATEWAY_CHANGES)
		return false;
	if (g->last)
		g->last->next = c;
	else
		g->first = c;
	g->last = c;
	if (g->first == c)
		change_begin_first(g);
	return true;
}

/* Not the first one, which is being made. */
static void take_out(struct change *c)
{
	struct gateway *g = c->gateway;
	for (struct change *at = g->first; at; at = at->next)
		if (at->next == c) {
			at->next = c->next;
			if (g->last == c)
				g->last = at;
			return;
		}
}

void change_forget(struct change *c)
{
	c->done = NULL;
	if (c->kind != CHANGE_PUT || c->state != CHANGE_WAITS)
		return;
	take_out(c);
	change_free(c);
}

void change_drop_first(struct gateway *g)
{
	struct change *c = g->first;
	g->first = c->next;
	if (!g->first)
		g->last = NULL;
	change_free(c);
}

void change_reload_behind(struct change *c, bool is_again)
{
	struct gateway *g = c->gateway;
	struct change *again = change_new(g, CHANGE_RELOAD, SLICE_NONE);
	if (!again) {
		gateway_fail(g, "no memory for a reload that sandboxes are shut by");
		return;
	}
	again->is_again = is_again;
	again->next = c->next;
	c->next = again;
	if (g->last == c)
		g->last = again;
}
