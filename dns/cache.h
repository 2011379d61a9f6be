/* Answers that were vetted, for as long as they are good and no longer. What was used least recently goes first when there
 * are too many, by number or by bytes. Answers belong to the policy that vetted them: another one empties it. */
#ifndef CAGE_DNS_CACHE_H
#define CAGE_DNS_CACHE_H

#include "dns/answer.h"

struct dns_cache;

/* At most so many answers, and bytes of them all. NULL without memory. */
struct dns_cache *dns_cache_new(size_t entries, size_t bytes);
void dns_cache_free(struct dns_cache **c);

/* The generation of the policy from now on; empty unless it is the same. */
void dns_cache_set_generation(struct dns_cache *c, uint64_t generation);

/* The answer and what is left of its time in seconds, at least 1; or NULL. It stays until the next call. */
const struct dns_answer *dns_cache_find(struct dns_cache *c, const struct dns_name *name, uint16_t type,
					uint64_t now_us, uint32_t *ttl);

/* Keeps a copy, in place of an old one; not one that is good for no time, of another generation, or without memory for it. */
void dns_cache_put(struct dns_cache *c, const struct dns_name *name, const struct dns_answer *a, uint64_t generation,
		   uint64_t now_us);

size_t dns_cache_count(const struct dns_cache *c);
size_t dns_cache_bytes(const struct dns_cache *c);

#endif
