/* The directory of `cage-proxy --sandboxes`. A sandbox is made as a whole beside the others and put into its place at once; what was
 * there before lies in the same place beside them until the proxy has said what it thinks of it. */
#ifndef CAGE_GATEWAY_BOXES_H
#define CAGE_GATEWAY_BOXES_H

#include <jansson.h>

#include "orchestrator/gateway/gateway.h"

/* What a sandbox is made of. */
struct box {
	const char *id, *token, *owner; /* owner: "": nobody's */
	const char *policy;             /* its text; NULL: that of --policy */
};

/* False with a message. */
bool boxes_open(const struct gateway *g);

bool box_is_there(const struct gateway *g, const char *id);

enum box_whose {
	BOX_NOBODYS, /* or it is not there */
	BOX_SOMEBODYS,
	BOX_UNREADABLE /* it may be anybody's */
};

/* Whose it is: "" but for BOX_SOMEBODYS. */
enum box_whose box_owner(const struct gateway *g, const char *id, char out[LIMIT_SANDBOX + 1]);

/* Makes it aside. False with errno. */
bool box_stage(const struct gateway *g, const struct box *b);

/* The path of the policy of what was made aside. */
void box_staged_policy(const struct gateway *g, char out[LIMIT_GATEWAY_PATH]);

/* What was made aside and what stands in its place change places; either may be nothing. False with errno. */
bool box_swap(const struct gateway *g, const char *id);

/* Its policy, as far as there is room, and where that is; *len 0: it can't be read. False: it has none of its own. */
bool box_policy(const struct gateway *g, const char *id, char path[LIMIT_GATEWAY_PATH], char *out, size_t room,
		size_t *len);

/* From the next reload of the proxy on nothing is let out for it, until it is made anew; why is told in the list. False with a message. */
bool box_shut(const struct gateway *g, const char *id, const char *why);

/* The reason, if it is shut, as far as there is room; how many bytes it has. */
size_t box_why_shut(const struct gateway *g, const char *id, char *out, size_t room);

/* What lies aside is removed. */
void box_clear(const struct gateway *g);

/* Ids, those of one owner or, where that is NULL, all; NULL: they can't be told. */
json_t *boxes_list(const struct gateway *g, const char *owner);

/* Of those ids the ones that are shut, with the reasons; NULL: no memory. */
json_t *boxes_shut(const struct gateway *g, const json_t *ids);

size_t boxes_count(const struct gateway *g);

#endif
