/* Every inspector by name; table.c puts them in order. */
#ifndef CAGE_INSPECTORS_TABLE_H
#define CAGE_INSPECTORS_TABLE_H

#include "inspectors/inspector.h"

extern const struct inspector name_inspector, body_size_inspector, rate_inspector, budget_inspector, secrets_inspector,
	canary_inspector, content_type_inspector, entropy_inspector, encoded_blob_inspector, external_inspector;

/* The place in the table of the inspector that hits of the built-in catalogue belong to. */
size_t catalogue_owner(void);

#endif
