/* What the fuzz targets share. A target is one LLVMFuzzerTestOneInput() that reads the input, runs one parser on it and
 * aborts when the parser breaks a promise that its header makes. */
#ifndef CAGE_TESTS_FUZZ_FUZZ_H
#define CAGE_TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "core/base/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(kept)                                                                      \
	do {                                                                               \
		if (!(kept)) {                                                             \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #kept); \
			abort();                                                           \
		}                                                                          \
	} while (0)

/* Cuts n bytes, or what there is, off the front of the input. */
static inline struct slice fuzz_take(struct slice *input, size_t n)
{
	struct slice taken = slice_head(*input, n);
	*input = slice_from(*input, n);
	return taken;
}

/* The next bytes of the input as a number of up to n bytes; 0 at its end. */
static inline uint64_t fuzz_number(struct slice *input, size_t n)
{
	struct slice bytes = fuzz_take(input, n);
	uint64_t v = 0;
	for (size_t i = 0; i < bytes.len; i++)
		v = v << 8 | (unsigned char)bytes.ptr[i];
	return v;
}

/* A copy that ends where the bytes end, so that the sanitizer sees a read beyond them. Freed with fuzz_free(). */
static inline struct slice fuzz_copy(struct slice s)
{
	char *copy = malloc(s.len ? s.len : 1);
	PROMISE(copy);
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	return slice_of(copy, s.len);
}

static inline void fuzz_free(struct slice *copy)
{
	free((void *)copy->ptr);
	*copy = SLICE_NONE;
}

#endif
