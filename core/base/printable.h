/* Text of others on its way to a terminal, which must not obey it. */
#ifndef CAGE_BASE_PRINTABLE_H
#define CAGE_BASE_PRINTABLE_H

#include <stddef.h>

/* Puts '?' in the place of each control character, those of UTF-8 beyond ASCII (U+0080 to U+009F) too. */
void make_printable(char *text, size_t len);

#endif
