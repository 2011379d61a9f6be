/* What all kinds of signatures need. */
#include "proxy/sign_private.h"

enum reason sign_refuse(const char **detail, const char *sentence)
{
	*detail = sentence;
	return REASON_SECRET_SLOT;
}

bool sign_set_field(struct message *head, struct slice name, struct slice value, struct arena *arena)
{
	struct field *fields = arena_array(arena, head->n_fields + 1, sizeof(*fields));
	size_t n = 0;
	if (!fields)
		return false;
	for (size_t i = 0; i < head->n_fields; i++)
		if (!slice_ieq(head->fields[i].name, name))
			fields[n++] = head->fields[i];
	fields[n++] = (struct field){.name = name, .value = value, .id = field_identify(name)};
	head->fields = fields;
	head->n_fields = n;
	return true;
}
