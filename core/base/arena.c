/* A chain of chunks, newest first; each allocation is cut off the newest. */
#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_CHUNK 4096
#define ARENA_ALIGN 16

struct arena_chunk {
	struct arena_chunk *older;
	size_t size; /* bytes behind this header */
	_Alignas(ARENA_ALIGN) char data[];
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){.limit = limit};
}

void arena_init_region(struct arena *a, void *region, size_t size)
{
	*a = (struct arena){.next = region, .end = (char *)region + size, .limit = size};
}

/* Starts a chunk of at least n bytes. Over a region there are no chunks to add. */
static bool arena_grow(struct arena *a, size_t n)
{
	if (!a->chunks && a->end)
		return false;
	size_t size = n > ARENA_CHUNK - sizeof(struct arena_chunk) ? n : ARENA_CHUNK - sizeof(struct arena_chunk);
	struct arena_chunk *c = malloc(sizeof(*c) + size);
	if (!c)
		return false;
	c->older = a->chunks;
	c->size = size;
	a->chunks = c;
	a->next = c->data;
	a->end = c->data + size;
	return true;
}

void *arena_alloc(struct arena *a, size_t n)
{
	if (n == 0)
		n = 1; /* so that it differs from a failure */
	if (n > a->limit - a->used)
		return NULL;
	size_t padded = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (padded == 0)
		padded = ARENA_ALIGN; /* also nothing has an address */
	if (padded < n || padded > a->limit - a->used)
		return NULL;
	if ((size_t)(a->end - a->next) < padded && !arena_grow(a, padded))
		return NULL;
	void *p = a->next;
	a->next += padded;
	a->used += padded;
	if (a->chunks)
		memset(p, 0, padded);
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		return NULL;
	return arena_alloc(a, total);
}

struct slice arena_dup(struct arena *a, struct slice s)
{
	char *p = arena_alloc(a, s.len ? s.len : 1);
	if (!p)
		return SLICE_NONE;
	if (s.len > 0)
		memcpy(p, s.ptr, s.len);
	return slice_of(p, s.len);
}

/* Frees all chunks newer than the oldest, which it returns. */
static struct arena_chunk *arena_trim(struct arena *a)
{
	struct arena_chunk *c = a->chunks;
	while (c && c->older) {
		struct arena_chunk *older = c->older;
		free(c);
		c = older;
	}
	return c;
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *first = arena_trim(a);
	if (!first)
		return;
	a->chunks = first;
	a->next = first->data;
	a->end = first->data + first->size;
	a->used = 0;
}

void arena_cleanse(struct arena *a)
{
	for (struct arena_chunk *c = a->chunks; c; c = c->older)
		explicit_bzero(c->data, c == a->chunks ? (size_t)(a->next - c->data) : c->size);
}

void arena_free(struct arena *a)
{
	free(arena_trim(a));
	*a = (struct arena){.limit = a->limit};
}
