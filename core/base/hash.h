/* FNV-1a of 64 bits: tells texts apart, and whether one is whole. It keeps nobody from making another text of the same number. */
#ifndef CAGE_BASE_HASH_H
#define CAGE_BASE_HASH_H

#include "core/base/slice.h"

static inline uint64_t hash_bytes(struct slice text)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.ptr[i]) * 0x100000001b3;
	return hash;
}

#endif
