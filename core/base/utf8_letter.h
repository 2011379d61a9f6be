/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef CAGE_BASE_UTF8_LETTER_H
#define CAGE_BASE_UTF8_LETTER_H

#include "core/base/slice.h"

/* How many bytes the letter at the beginning has, of at least one. 0: it is none; -1: it is cut. */
int utf8_letter(struct slice bytes);

/* Puts '?' in the place of each byte that is of no letter, or of one that is cut. */
void utf8_mend(char *text, size_t len);

#endif
