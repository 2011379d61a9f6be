/* malloc, and a free that overwrites. */
#include "core/http/decode_alloc.h"

#include <stdlib.h>

#include "core/base/wipe.h"

void *decode_alloc(void *opaque, size_t size)
{
	(void)opaque;
	return malloc(size);
}

void decode_release(void *opaque, void *memory)
{
	(void)opaque;
	wipe_free(memory);
}
