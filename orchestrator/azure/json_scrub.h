/* All that is text in an answer, for who takes something out of it: strings, names of members, and numbers as they are written. */
#ifndef CAGE_AZURE_JSON_SCRUB_H
#define CAGE_AZURE_JSON_SCRUB_H

#include <jansson.h>
#include <stdbool.h>

/* Changes a string if it has to be. False: no memory. */
typedef bool json_scrub_text(const void *arg, json_t *text);

/* A number becomes what its text was changed to; of members that get the same name one is left. False: no memory, and not all was
 * looked at. */
bool json_scrub(json_t *value, json_scrub_text *each, const void *arg);

/* A number as it is written; NULL: no memory. */
char *json_number_text(const json_t *number);

#endif
