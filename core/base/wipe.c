/* malloc knows how large a block is. */
#include "core/base/wipe.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Where a compiler sees how much was asked for, it takes the rest of the block for somebody else's, and ends the program. */
__attribute__((noinline)) void wipe_free(void *memory)
{
	if (!memory)
		return;
	explicit_bzero(memory, malloc_usable_size(memory));
	free(memory);
}
