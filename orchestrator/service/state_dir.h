/* Where a service keeps what it has: one directory, which the service, `cage secret` and clients find in the same way. */
#ifndef CAGE_SERVICE_STATE_DIR_H
#define CAGE_SERVICE_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define STATE_DIR_SOCKET "socket" /* in it: where the API is listened for, unless the configuration says otherwise */

/* What was given, else $CAGE_STATE, else the default; false when there is none to be had. */
bool state_dir_path(const char *given, char *out, size_t room);

/* Makes it for us alone, and those above it. False with a message. */
bool state_dir_make(const char *dir);

#endif
