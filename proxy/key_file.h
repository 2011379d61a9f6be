/* Keys of an installation: files of random bytes beside the CA, made on first start and kept. */
#ifndef CAGE_PROXY_KEY_FILE_H
#define CAGE_PROXY_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads DIR/NAME, or makes it (mode 0600). Says on stderr what is wrong. */
bool key_file_open(const char *dir, const char *name, unsigned char *key, size_t len);

#endif
