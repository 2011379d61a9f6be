/* Where a service keeps what it has: one directory, which the service, `cage secret` and clients find in the same way. */
#ifndef CAGE_SERVICE_STATE_DIR_H
#define CAGE_SERVICE_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define STATE_DIR_SOCKET "socket" /* in it: where the API is listened for, unless the configuration says otherwise */

/* What was given, else $CAGE_STATE, else the default; false when there is none to be had. */
bool state_dir_path(const char *given, char *out, size_t room);

#define STATE_DIR_ID 17 /* room for the word of a service */

/* The word that is on all that this service makes elsewhere: random, made once, and kept in DIR/id. So no other service takes it for its
 * own, also not one of another machine whose directory has the same name. False with a message. */
bool state_dir_id(const char *dir, char out[STATE_DIR_ID]);

/* Was it made already? */
bool state_dir_has_id(const char *dir);

/* Makes it for us alone, and those above it. False with a message. */
bool state_dir_make(const char *dir);

#endif
