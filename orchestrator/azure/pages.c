/* What a page has to be, and how many of them there may be. */
#include "orchestrator/azure/pages.h"

#include <stdio.h>

void pages_begin(struct pages *p, const char *where)
{
	*p = (struct pages){.n = 0};
	snprintf(p->next, sizeof(p->next), "%s", where);
}

const char *pages_take(struct pages *p, const json_t *answer, pages_item *each, void *arg)
{
	const json_t *list = json_object_get(answer, "value"), *link = json_object_get(answer, "nextLink");
	const char *next = json_string_value(link);
	size_t i;
	json_t *item;
	if (!json_is_array(list))
		return "a page of it is no list";
	p->items += json_array_size(list);
	if (p->items > LIMIT_DEPLOY_ITEMS)
		return "it is too long";
	json_array_foreach(list, i, item) each(arg, item);
	if (snprintf(p->next, sizeof(p->next), "%s", next ? next : "") >= (int)sizeof(p->next))
		return "the address of its next page is too long";
	return ++p->n >= LIMIT_ACI_PAGES && p->next[0] ? "it has too many pages" : NULL;
}
