/* malloc knows how large a block is. */
#include "core/base/wipe.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void wipe_free(void *memory)
{
	if (!memory)
		return;
	explicit_bzero(memory, malloc_usable_size(memory));
	free(memory);
}
