/* Names such as "token" are in every text; few of them have something assigned to them. Hyperscan spends more on them than
 * on all other formats together, so they are looked for here: three letters at once over the whole text, then a few bytes
 * behind each. */
#ifndef CAGE_INSPECTORS_ASSIGNED_H
#define CAGE_INSPECTORS_ASSIGNED_H

#include "core/base/slice.h"

#define ASSIGNED_NAME 32    /* bytes of a name up to the place that is found, at most */
#define ASSIGNED_LEAST 9    /* characters of a value that counts */
#define ASSIGNED_WORD 4     /* bytes that tell a word */
#define ASSIGNED_BEHIND 128 /* bytes behind a word that are looked at, at most */

/* Told where a word begins that has something assigned to it, and how many bytes before it its name may begin; false: no
 * more. */
typedef bool assigned_found(void *arg, size_t at, size_t before);

/* Looks for key, token, secret, pass and pwd in any case, all of whose first ASSIGNED_WORD bytes are in the text, in a
 * name to which a value may be assigned: `token_id": "...`, `PASSWD = ...`, `['key'] => ...`; quotes and blanks also as
 * JSON strings write them. Where the text ends before that is clear, it may. False: it was told so. */
bool assigned_find(struct slice text, assigned_found *found, void *arg);

#endif
