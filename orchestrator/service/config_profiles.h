/* Profiles of the configuration: each becomes the JSON that a create could have said, and is held to the same checks. */
#ifndef CAGE_SERVICE_CONFIG_PROFILES_H
#define CAGE_SERVICE_CONFIG_PROFILES_H

#include "core/policy/load.h"
#include "orchestrator/service/config.h"

void config_profiles_read(struct loader *l, const struct node *value, struct config *c);

/* config_judge.c: tells what can't work together, and lowers defaults that nobody has written to the maximum. */
void config_judge(struct config *c, const struct sandbox_limits *usual, struct loader *l);

/* The same keys wherever limits of a sandbox stand. */
void config_limits_read(struct loader *l, const struct node *value, struct sandbox_limits *out);

/* a-z, 0-9, '.', '_' and '-', up to LIMIT_SERVE_LABEL. */
bool label_name_is_good(struct slice s);

#endif
