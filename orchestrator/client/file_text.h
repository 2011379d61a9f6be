/* A file as a part of a request. */
#ifndef CAGE_CLIENT_FILE_TEXT_H
#define CAGE_CLIENT_FILE_TEXT_H

#include <stddef.h>

/* All of it ("-": stdin), up to LIMIT_CLIENT_TEXT; NULL with a message that begins with option. Freed with free(). */
char *file_text(const char *option, const char *path, size_t *len);

/* The same of one that was opened, and is closed here; -1: it could not be, as errno says. */
char *file_text_from(int fd, const char *option, const char *path, size_t *len);

#endif
