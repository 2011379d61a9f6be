/* Names in which nothing can be found: told at a small part of what a search costs, and never of a name in which a search
 * would find something. A name that it is not sure about has to be searched.
 *
 * Nothing can be found in a name where no format can begin with three of its bytes and end within it, where no known value
 * or placeholder stands, and in which there is nothing to decode. */
#ifndef CAGE_INSPECTORS_HARMLESS_H
#define CAGE_INSPECTORS_HARMLESS_H

#include "inspectors/known/known.h"
#include "inspectors/scan/format.h"

struct harmless;

/* NULL: no memory. */
struct harmless *harmless_new(void);
void harmless_free(struct harmless **h);

/* Formats that are looked for. */
void harmless_add(struct harmless *h, const struct format *formats, size_t n);

/* Of a name in lower case. known may be NULL. */
bool harmless_is_name(struct harmless *h, const struct known_set *known, struct slice name);

#endif
