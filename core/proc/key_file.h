/* Keys of an installation: files of random bytes beside the CA, made on first start and kept. */
#ifndef CAGE_PROC_KEY_FILE_H
#define CAGE_PROC_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The directory of --ca-dir or its default; false when there is none to be had. */
bool key_dir_path(const char *given, char *out, size_t room);

/* Makes the directory and those above it. */
bool key_dir_make(const char *dir);

/* Reads DIR/NAME, or makes it (mode 0600). Says on stderr what is wrong. */
bool key_file_open(const char *dir, const char *name, unsigned char *key, size_t len);

/* Reads DIR/NAME, which may be a link, as the volumes of secrets of containers have them; nothing is made. Says what is wrong. */
bool key_file_read(const char *dir, const char *name, unsigned char *key, size_t len);

/* From the directory of keys, or if that is NULL from that of the CA, where it is made. */
bool key_file_get(const char *keys, const char *ca_dir, const char *name, unsigned char *key, size_t len);

/* The key under which findings are fingerprinted, so that the same secret has the same fingerprint in every log of this
 * installation. */
#define KEY_FILE_FINGERPRINT "fingerprint.key"

#endif
