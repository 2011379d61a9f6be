/* Formats are written as they stand in a file. A file that an agent sends stands inside a JSON string, where quotes and
 * line ends are escaped: "\"key\": ...", "...\nAKIA...". A view for those would be a second copy of nearly all JSON, so
 * the patterns themselves allow for them. */
#ifndef CAGE_INSPECTORS_EXPAND_H
#define CAGE_INSPECTORS_EXPAND_H

#include "core/base/arena.h"

/* The pattern with: `"` and `["']` also behind backslashes, `\s` also as \n, \r or \t, and a leading `\b` also behind
 * such an escape, whose last letter would otherwise be taken for a part of the word. In the arena; ptr NULL without
 * memory. */
struct slice pattern_expand(struct slice pattern, struct arena *arena);

#endif
