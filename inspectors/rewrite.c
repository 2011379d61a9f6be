/* Changes to the fields of a request, asked for by inspectors and made before it is sent. */
#include "inspectors/chain_private.h"

bool inspection_rewrite(struct inspection *i, struct slice name, struct slice value)
{
	struct chain_run *r = i->run;
	struct rewrite *w = arena_alloc(r->arena, sizeof(*w));
	if (!w)
		return false;
	w->name = arena_dup(r->arena, name);
	if (value.ptr)
		w->value = arena_dup(r->arena, value);
	if (!w->name.ptr || (value.ptr && !w->value.ptr))
		return false;
	struct rewrite **last = &r->rewrites;
	while (*last)
		last = &(*last)->next;
	*last = w;
	return true;
}

/* Takes out fields of that name; how many are left. */
static size_t drop_fields(struct field *fields, size_t n, struct slice name)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (!slice_ieq(fields[i].name, name))
			fields[kept++] = fields[i];
	return kept;
}

enum cage_status chain_rewrite(const struct chain_run *r, struct message *head)
{
	size_t n = 0;
	for (const struct rewrite *w = r->rewrites; w; w = w->next)
		n++;
	if (n == 0)
		return CAGE_OK;
	struct field *fields = arena_array(r->arena, head->n_fields + n, sizeof(*fields));
	if (!fields)
		return CAGE_ENOMEM;
	if (head->n_fields > 0)
		memcpy(fields, head->fields, head->n_fields * sizeof(*fields));
	n = head->n_fields;
	for (const struct rewrite *w = r->rewrites; w; w = w->next) {
		n = drop_fields(fields, n, w->name);
		if (w->value.ptr)
			fields[n++] = (struct field){.name = w->name, .value = w->value, .id = field_identify(w->name)};
	}
	head->fields = fields;
	head->n_fields = n;
	return CAGE_OK;
}
