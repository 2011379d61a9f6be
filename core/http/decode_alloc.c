/* malloc, which knows how large a block is. */
#include "core/http/decode_alloc.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *decode_alloc(void *opaque, size_t size)
{
	(void)opaque;
	return malloc(size);
}

void decode_release(void *opaque, void *memory)
{
	(void)opaque;
	if (!memory)
		return;
	explicit_bzero(memory, malloc_usable_size(memory));
	free(memory);
}
