/* YAML as JSON: all that is no list and no mapping is text. */
#ifndef CAGE_SERVICE_NODE_JSON_H
#define CAGE_SERVICE_NODE_JSON_H

#include <jansson.h>

#include "core/policy/node.h"

json_t *node_json(const struct node *node);

#endif
