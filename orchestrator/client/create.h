/* The command line of cage create, as the body of its request. */
#ifndef CAGE_CLIENT_CREATE_H
#define CAGE_CLIENT_CREATE_H

#include <jansson.h>

#include "orchestrator/client/client.h"

struct create {
	json_t *body; /* what is asked for so far */
	bool follow, detach;
	const char *policy;                     /* its file; NULL: none */
	bool has_allow, has_policy, is_cut_off; /* ways to say which network it has: one of them */
};

extern const struct command_line create_command_line;

/* Options that only together make sense; and what stands behind "--". False with a message. */
bool create_complete(struct create *c, const struct client *client);

/* ---- create_values.c: values of options, each put into the body; false with a message ---- */

bool create_put_limits(json_t *body, const char *text);
bool create_put_lifetime(json_t *body, const char *text);
bool create_put_env(json_t *body, const char *text);
bool create_put_label(json_t *body, const char *text);
bool create_put_publish(json_t *body, const char *text);
bool create_put_file(json_t *body, const char *text);
bool create_put_policy(json_t *body, const char *text);

/* The next word of the list KEY. */
bool create_put_word(json_t *body, const char *key, const char *word);

/* The member KEY, an object or a list, made where there is none. */
json_t *create_member(json_t *body, const char *key, json_t *made);

#endif
