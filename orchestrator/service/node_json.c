/* One value after the other, as deep as the YAML goes. */
#include "orchestrator/service/node_json.h"

json_t *node_json(const struct node *node)
{
	if (node->kind == NODE_TEXT)
		return json_stringn(node->text.ptr ? node->text.ptr : "", node->text.len);
	json_t *out = node->kind == NODE_LIST ? json_array() : json_object();
	for (const struct node *item = node->first; item && out; item = item->next) {
		json_t *value = node_json(item);
		if (node->kind == NODE_LIST)
			json_array_append_new(out, value);
		else
			json_object_setn_new(out, item->key.ptr, item->key.len, value);
	}
	return out;
}
