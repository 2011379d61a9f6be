/* Names that nobody else has. */
#ifndef CAGE_SERVICE_UNIQUE_H
#define CAGE_SERVICE_UNIQUE_H

#include <stddef.h>

/* prefix and sixteen random letters and digits; the process ends when there are no random bytes. */
void unique_text(const char *prefix, char *out, size_t room);

#endif
