/* malloc and free, with an overwrite of all that was asked for, and a realloc that never leaves a copy behind. */
#include "proxy/h2_mem.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/wipe.h"

static void *mem_malloc(size_t size, void *arg)
{
	(void)arg;
	return malloc(size);
}

static void *mem_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return calloc(n, size);
}

static void mem_free(void *ptr, void *arg)
{
	(void)arg;
	wipe_free(ptr);
}

static void *mem_realloc(void *ptr, size_t size, void *arg)
{
	void *bigger = malloc(size);
	if (!bigger)
		return NULL;
	if (ptr) {
		size_t old = malloc_usable_size(ptr);
		memcpy(bigger, ptr, old < size ? old : size);
	}
	mem_free(ptr, arg);
	return bigger;
}

nghttp2_mem *h2_mem(void)
{
	static nghttp2_mem mem = {.malloc = mem_malloc, .free = mem_free, .calloc = mem_calloc, .realloc = mem_realloc};
	return &mem;
}
