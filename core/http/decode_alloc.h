/* Memory for the libraries that decode: overwritten before it is given back, since what they have in their windows may be
 * a response with a secret in it. */
#ifndef CAGE_HTTP_DECODE_ALLOC_H
#define CAGE_HTTP_DECODE_ALLOC_H

#include <stddef.h>

/* As Brotli and Zstandard want them; `opaque` is not used. */
void *decode_alloc(void *opaque, size_t size);
void decode_release(void *opaque, void *memory);

#endif
