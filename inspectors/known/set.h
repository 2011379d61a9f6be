/* A set of known items, and the tables that say quickly where none of them begins.
 *
 * The first four bytes of a value in some form are three pairs of bytes. For each pair one byte says at which of the
 * three places it may stand; where no value has it, none begins there or one or two bytes before, so that a search
 * looks at one pair for every three bytes. Where one may begin, the four bytes say which ways are to be compared;
 * those that are the same for every value in JSON, \u00, say nothing, and the next two are taken. The tables are made
 * by the comparison itself, so that they can't differ from it. */
#ifndef CAGE_INSPECTORS_KNOWN_SET_H
#define CAGE_INSPECTORS_KNOWN_SET_H

#include "inspectors/known/known_private.h"

#define KNOWN_START 4     /* bytes that the pairs cover; every value has more, in any form */
#define KNOWN_START_MAX 6 /* bytes that the ways are chosen by */
#define KNOWN_BUCKETS 4096

/* What a way may begin with. */
struct known_start {
	uint32_t key;
	uint32_t way; /* its index */
};

struct known_set {
	unsigned refs;
	size_t n_items, n_ways;
	size_t reach;
	struct known_item *items;
	struct known_way *ways;
	struct known_start *starts;          /* by bucket; within one, by way */
	uint32_t buckets[KNOWN_BUCKETS + 1]; /* where each begins; the last one: where they end */
	bool firsts[256];                    /* bytes that begin some way */
	unsigned char pairs[65536];          /* bit k: some way has this pair k bytes behind its start */
};

/* Two bytes of a text as an index. */
static inline unsigned known_pair(const char *at)
{
	return (unsigned)(unsigned char)at[0] | (unsigned)(unsigned char)at[1] << 8;
}

/* How many bytes the start there has; four are there to be looked at. */
static inline size_t known_start_length(const char *at)
{
	return memcmp(at, "\\u00", KNOWN_START) == 0 ? KNOWN_START_MAX : KNOWN_START;
}

/* The last four of them. That starts of both lengths may have the same key does no harm: ways are compared. */
static inline uint32_t known_start_key(const char *at)
{
	const char *last = at + known_start_length(at) - 4;
	return known_pair(last) | (uint32_t)known_pair(last + 2) << 16;
}

static inline unsigned known_bucket(uint32_t key)
{
	return key * 2654435769u >> 20;
}

#endif
