/* Writing that ends when all is written. It needs nothing but libc, for the programs that have nothing else. */
#ifndef CAGE_BASE_WRITE_ALL_H
#define CAGE_BASE_WRITE_ALL_H

#include <stdbool.h>
#include <stddef.h>

/* False with errno. */
bool write_all(int fd, const char *bytes, size_t n);

#endif
