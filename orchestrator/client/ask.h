/* A line that is typed and not shown. */
#ifndef CAGE_CLIENT_ASK_H
#define CAGE_CLIENT_ASK_H

#include <stdbool.h>
#include <stddef.h>

/* Reads one line from the terminal on stdin, with its line break. False with a message; Ctrl-C ends this program as it ends any
 * other, with the terminal as it was before. */
bool ask_silently(const char *name, char *out, size_t room, size_t *len);

#endif
