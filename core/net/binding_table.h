/* A bounded table of bindings, by name and by the address that was given for one. What is new takes the place of what is
 * old under the same name and kind, and when there is no room, of what was put longest ago. */
#ifndef CAGE_NET_BINDING_TABLE_H
#define CAGE_NET_BINDING_TABLE_H

#include "core/net/binding.h"

struct binding_table;

struct binding_table *binding_table_new(size_t room); /* NULL: no memory */
void binding_table_free(struct binding_table **t);

/* It lives from now for its life. CAGE_ENOMEM. CAGE_ELIMIT: there is no room for a given address but that of one that
 * lives, which somebody may still connect to. */
enum cage_status binding_table_put(struct binding_table *t, const struct binding *b, uint64_t now_us) MUST_CHECK;

/* What lives under that name, IPv6 and IPv4 in turn; how many. */
size_t binding_table_addresses(const struct binding_table *t, struct slice name, uint64_t now_us,
			       struct addr out[LIMIT_ANSWERS]);

/* The address that stands for the name, and for how many seconds; false: none. */
bool binding_table_given(const struct binding_table *t, struct slice name, uint64_t now_us, struct addr *out,
			 uint32_t *life_s);

/* The name that it stands for, borrowed until the next change; empty: none. */
struct slice binding_table_name(const struct binding_table *t, const struct addr *given, uint64_t now_us);

/* All that live, from the oldest to the newest, with what is left of their lives. */
void binding_table_each(const struct binding_table *t, uint64_t now_us,
			void (*each)(void *arg, const struct binding *b), void *arg);

#endif
