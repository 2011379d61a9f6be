/* JSON of others before it is read: Azure tells what an agent has written as one text, and a single letter in it that no text can have
 * would make all of the answer unreadable. */
#ifndef CAGE_AZURE_JSON_MEND_H
#define CAGE_AZURE_JSON_MEND_H

#include <stddef.h>

/* In its strings, in place: escapes of NUL and of halves of a pair become those of U+FFFD; bytes that are no UTF-8, and control
 * characters, become '?'. What is no JSON stays none. */
void json_mend(char *text, size_t len);

#endif
